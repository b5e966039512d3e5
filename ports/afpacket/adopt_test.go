package afpacket

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// taken is a frame that a port has received.
func taken(t *testing.T, p *Port) string {
	t.Helper()
	batch := make([]*packet.Frame, 1)
	for range 100_000 {
		if p.Receive(batch) == 1 {
			defer packet.Release(batch)
			return string(batch[0].Bytes())
		}
	}
	t.Fatal("no frame came")
	return ""
}

// TestAdopt: a port goes on with another one's socket: what waits there is received
// once, and the Node's stack never sees a frame.
func TestAdopt(t *testing.T) {
	for name, o := range map[string]Options{"tcx": {}, "filter": {older: true}} {
		t.Run(name, func(t *testing.T) { adoptAfter(t, o) })
	}
}

func adoptAfter(t *testing.T, o Options) {
	node, pod, before := pair(t, o)
	wire := nstest.OpenWire(t, pod, "eth0")
	frame := func(port uint16) string {
		return string(pt.UDP4(pt.Options{SrcPort: port, Payload: make([]byte, 20)}))
	}
	if err := wire.Send([]byte(frame(1))); err != nil {
		t.Fatal(err)
	}
	if taken(t, before) != frame(1) {
		t.Fatal("another frame came")
	}
	if err := wire.Send([]byte(frame(2))); err != nil {
		t.Fatal(err)
	}
	before.Rest()
	if n := before.Receive(make([]*packet.Frame, 1)); n != 0 {
		t.Errorf("%d frames of a port that rests", n)
	}
	fds := porttest.Copies(t, before.Descriptors())
	var after *Port
	var err error
	node.Do(t, func() { after, err = Adopt(Options{Interface: "sw0", older: o.older}, fds) })
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := before.Close(); err != nil || before.Descriptors() != nil {
		t.Fatal(err)
	}
	if err := after.BeginTraffic(); err != nil {
		t.Fatal(err)
	}
	if err := wire.Send([]byte(frame(3))); err != nil {
		t.Fatal(err)
	}
	for port := uint16(2); port <= 3; port++ {
		if taken(t, after) != frame(port) {
			t.Errorf("frame %d is another", port)
		}
	}
	if i := after.Info(); i.Driver != "afpacket" || !i.Up {
		t.Errorf("%+v", i)
	}
	if s := node.Link(t, "sw0").Attrs().Statistics; s.RxDropped != 0 {
		t.Errorf("the link dropped %d", s.RxDropped)
	}
}

// TestReprogram: a left-over socket and its link get other programs. Frames that wait in the
// socket stay.
func TestReprogram(t *testing.T) {
	node, pod, before := pair(t, Options{})
	wire := nstest.OpenWire(t, pod, "eth0")
	fds := porttest.Copies(t, before.Descriptors())
	before.Rest()
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	frame := string(pt.UDP4(pt.Options{SrcPort: 1, Payload: make([]byte, 20)}))
	if err := wire.Send([]byte(frame)); err != nil {
		t.Fatal(err)
	}
	program := func() (id uint32) {
		node.Do(t, func() {
			there, err := link.QueryPrograms(link.QueryOptions{Target: node.Link(t, "sw0").Attrs().Index, Attach: ebpf.AttachTCXIngress})
			if err != nil || len(there.Programs) != 1 {
				t.Fatalf("%+v, %v", there, err)
			}
			id = uint32(there.Programs[0].ID)
		})
		return id
	}
	had := program()
	node.Do(t, func() {
		if err := Reprogram("sw0", fds[0], Programs{}); err != nil {
			t.Fatal(err)
		}
	})
	if program() == had {
		t.Error("the program at ingress is the same")
	}
	node.Do(t, func() {
		after, err := Adopt(Options{Interface: "sw0", Attached: true}, fds)
		if err != nil {
			t.Fatal(err)
		}
		defer after.Close()
		if taken(t, after) != frame {
			t.Error("another frame came")
		}
	})
}

// TestAdoptRefusals: descriptors that are not a port of the interface are refused and closed.
func TestAdoptRefusals(t *testing.T) {
	node, _, p := pair(t, Options{})
	nstest.AddVeth(t, node, "sw1", nstest.New(t), "eth0")
	for want, c := range map[string]struct {
		link string
		fds  func() []int
	}{
		"of another interface": {"sw1", func() []int { return porttest.Copies(t, p.Descriptors()) }},
		"0 descriptors, want":  {"sw0", func() []int { return nil }},
		"2 descriptors, want":  {"sw0", func() []int { fds := p.Descriptors(); return porttest.Copies(t, []int{fds[0], fds[0]}) }},
		"Link not found":       {"sw9", func() []int { return porttest.Copies(t, p.Descriptors()) }},
	} {
		fds := c.fds()
		var err error
		node.Do(t, func() { _, err = Adopt(Options{Interface: c.link}, fds) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, fd := range fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor is open", want)
			}
		}
	}
}
