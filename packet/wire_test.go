package packet

import (
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
)

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := wiretest.New(t, 21)
	for range 300 {
		wiretest.Same(t, wiretest.Value[Offload](f))
		wiretest.Same(t, wiretest.Value[Tunnel](f))
		wiretest.Same(t, wiretest.Value[MAC](f))
	}
}

// TestWrongMAC: text other than an address of six bytes is refused.
func TestWrongMAC(t *testing.T) {
	for _, text := range []string{"", "0a:00", "0a:00:00:00:00:01:02:03", "x"} {
		var m MAC
		if err := m.UnmarshalText([]byte(text)); err == nil || m != (MAC{}) {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
}
