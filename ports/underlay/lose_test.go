package underlay

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// TestKernelTakesNoFrame: a send buffer is full, because the Node's neighbour entry is
// not resolved, and a route prohibits. Either way the last inner frame is kept, so
// drops can name the pod that sent it.
func TestKernelTakesNoFrame(t *testing.T) {
	here, silent, prohibited := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("203.0.113.9")
	ns, other := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, ns, "u0", other, "u1")
	ns.SetUp(t, "u0")
	other.SetUp(t, "u1")
	ns.AddAddress(t, "u0", here.String()+"/24")
	if out, err := ns.Command("ip", "route", "add", "prohibit", prohibited.String()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := open(t, ns, Config{Local: here, Peers: peersAt(silent, prohibited)})
	for _, fd := range p.senders {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1); err != nil {
			t.Fatal(err)
		}
	}
	for to, why := range map[netip.Addr]ports.Reason{silent: ports.TxRingFull, prohibited: ports.TxFailed} {
		frame := pt.UDP4(payload(1300))
		for n := 0; p.Stats().Reasons[why.String()] == 0; n++ {
			if transmit(p, to, 7, frame); n == 100 {
				t.Fatalf("%+v, want %q", p.Stats(), why)
			}
		}
		x := p.DropSample(why.String())
		if x.Source != to || x.Length != len(frame) || !bytes.Equal(x.Head, frame[:ports.DropSampleLen]) {
			t.Errorf("%v: %d bytes to %v: %x", why, x.Length, x.Source, x.Head)
		}
	}
}
