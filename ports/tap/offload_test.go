package tap

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// verdictProgram gives every frame the same verdict.
func verdictProgram(t *testing.T, verdict int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// attached counts the programs at tc egress of a namespace's gw0.
func attached(t *testing.T, host *nstest.Namespace) (n int) {
	t.Helper()
	index := host.Link(t, "gw0").Attrs().Index
	host.Do(t, func() {
		r, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXEgress})
		if err != nil {
			t.Fatal(err)
		}
		n = len(r.Programs)
	})
	return n
}

const tcxNext, tcxDrop = -1, 2

// TestOffloadProgram: what the program at tc egress takes does not come to the port, and the
// rest does.
func TestOffloadProgram(t *testing.T) {
	for _, verdict := range []int32{tcxNext, tcxDrop} {
		host := nstest.New(t)
		p := openIn(t, host, Options{Name: "gw0", Offload: verdictProgram(t, verdict)})
		if index := host.Link(t, "gw0").Attrs().Index; p.Info().OffloadLink != uint32(index) || attached(t, host) != 1 {
			t.Errorf("%+v is link %d with %d programs", p.Info(), index, attached(t, host))
		}
		nstest.OpenWire(t, host, "gw0").Send(frameFrom([6]byte{2, 9, 9, 9, 9, 9}, 0).Bytes())
		if verdict == tcxNext {
			packet.Release([]*packet.Frame{receiveFrom(t, p, 60)})
		} else if n := p.Receive(make([]*packet.Frame, 1)); n != 0 {
			t.Errorf("%d frames came", n)
		}
	}
}

// TestOffloadGiven: the program is at the device as long as a process has the port that was
// given. A process that the port was not given to has a program of its own.
func TestOffloadGiven(t *testing.T) {
	host := nstest.New(t)
	o := Options{Name: "gw0", Owner: "one", Offload: verdictProgram(t, tcxNext), Given: true}
	before := openIn(t, host, o)
	fds := porttest.Copies(t, before.Descriptors())
	if len(fds) != 2 {
		t.Fatalf("%d descriptors", len(fds))
	}
	o.Offload = nil
	after := adoptIn(t, host, o, fds)
	before.Keep(true)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	if attached(t, host) != 1 || after.Info().OffloadLink == 0 {
		t.Errorf("%d programs, %+v", attached(t, host), after.Info())
	}
	o.Given = false
	after.given = false // as a process that opens its ports itself
	plain := adoptIn(t, host, o, porttest.Copies(t, after.Descriptors()))
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
	if attached(t, host) != 0 || plain.Info().OffloadLink != 0 {
		t.Errorf("%d programs, %+v", attached(t, host), plain.Info())
	}
}

// adoptIn is Adopt in a namespace.
func adoptIn(t *testing.T, host *nstest.Namespace, o Options, fds []int) (p *Port) {
	t.Helper()
	host.Do(t, func() {
		var err error
		if p, err = Adopt(o, fds); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { p.Close() })
	return p
}

// TestOffloadOfAnother: a program at another device is refused.
func TestOffloadOfAnother(t *testing.T) {
	host := nstest.New(t)
	o := Options{Name: "gw0", Offload: verdictProgram(t, tcxNext), Given: true}
	here := openIn(t, host, o)
	o.Name = "gw1"
	there := openIn(t, host, o)
	fds := porttest.Copies(t, []int{here.Descriptors()[0], there.Descriptors()[1]})
	o.Name, o.Offload = "gw0", nil
	host.Do(t, func() {
		if p, err := Adopt(o, fds); err == nil || !strings.Contains(err.Error(), "the program is not at the device") {
			t.Errorf("%v, %v", p, err)
		}
	})
	if attached(t, host) != 1 {
		t.Errorf("%d programs of the device that was there", attached(t, host))
	}
}

// TestOffloadSource: the kernel's programs write the address that Transmit writes.
func TestOffloadSource(t *testing.T) {
	pod, shown := [6]byte{0x5e, 1, 2, 3, 4, 5}, MarkMAC(7)
	for _, marks := range []bool{false, true} {
		host := nstest.New(t)
		p := openIn(t, host, Options{Name: "gw0", Marks: marks})
		wire := nstest.OpenWire(t, host, "gw0")
		for _, src := range [][6]byte{pod, shown} {
			for _, mark := range []uint32{0, 1, 0x80000000} {
				p.Transmit([]*packet.Frame{frameFrom(src, mark)})
				if got, want := p.OffloadSource(src, mark), [6]byte(sourceAtHost(t, wire)); got != want {
					t.Errorf("marks %v, mark %#x from %x: %x, and Transmit writes %x", marks, mark, src, got, want)
				}
			}
		}
	}
}
