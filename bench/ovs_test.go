package bench

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

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

// TestReap: a child's end is told as cmd.Wait tells it.
func TestReap(t *testing.T) {
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "echo gone; exit 3")
	cmd.Stdout = &out
	var exit *exec.ExitError
	if err := runCommand(cmd); !errors.As(err, &exit) || exit.ExitCode() != 3 || out.String() != "gone\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := runCommand(exec.Command("/nonexistent")); err == nil {
		t.Error("no program, and no error")
	}
}
