package ovs

import (
	"strings"
	"testing"
)

// TestParseSent checks that a port's own counter is read.
func TestParseSent(t *testing.T) {
	const text = `netdev@ovs-netdev:
  port 2: in (afxdp: n_rxq=1)
    RX packets:6 errors:? dropped:?
    TX packets:8 errors:? dropped:?
  port 6: client-a (dummy)
    RX packets:0 errors:? dropped:?
    TX packets:1234567 errors:? dropped:?
`
	for port, want := range map[string]float64{"in": 8, "client-a": 1234567} {
		if got, err := parseSent(text, port); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", port, got, err, want)
		}
	}
	for _, port := range []string{"client", "out"} {
		if _, err := parseSent(text, port); err == nil || !strings.Contains(err.Error(), port) {
			t.Errorf("%s: %v", port, err)
		}
	}
}
