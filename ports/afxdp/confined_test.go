package afxdp

import (
	"errors"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts ports that were opened for
// it, each with memory of its own, and frames pass between them. The programs go when it
// ends.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	node := newTwoPods(t, Native)
	node.options[1].BusyPoll = polling
	memory := NewMemory(node.ring, 2)
	var given []*Port
	var fds []int
	node.node.Do(t, func() {
		for _, o := range node.options {
			p, err := memory.OpenToGive(o)
			if err != nil {
				t.Fatal(err)
			}
			given, fds = append(given, p), append(fds, porttest.Copies(t, p.Descriptors())...)
		}
	})
	child := confinetest.Start(t, node.node, "TestAdoptConfined", fds)
	for _, p := range given {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
	frame := string(pt.UDP4(pt.Options{SrcPort: 7, Payload: make([]byte, 20)}))
	if err := node.wires[0].Send([]byte(frame)); err != nil {
		t.Fatal(err)
	}
	child.Wait(t)
	if got, err := node.wires[1].Receive(time.Minute); err != nil || string(got) != frame {
		t.Errorf("%x came, error %v", got, err)
	}
	nstest.Until(t, "the programs to go", func() bool {
		a, b := node.node.Link(t, "a").Attrs().Xdp, node.node.Link(t, "b").Attrs().Xdp
		return (a == nil || !a.Attached) && (b == nil || !b.Attached)
	})
}

var polling = BusyPoll{Time: 20 * time.Microsecond, Budget: 16}

// insideAdopt sends what pod a has sent to pod b.
func insideAdopt(t *testing.T) {
	t.Helper()
	memory := NewMemory(64, 2) // the ports have other rings
	_, err := memory.Adopt(Options{Interface: "a"}, porttest.Copies(t, []int{3, 4, 5, 6, 7}))
	t.Log("not Attached: ", err)
	if err == nil {
		t.Fatal("it goes on without a program of its own")
	}
	var both [2]*Port
	for i, name := range []string{"a", "b"} {
		first := 3 + i*Descriptors
		both[i], err = memory.Adopt(Options{Interface: name, Attached: true}, []int{first, first + 1, first + 2, first + 3, first + 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(both[i].BeginTraffic(), both[i].Relink()); err != nil {
			t.Fatal(err)
		}
	}
	if both[0].socket.busy || !both[1].socket.busy || both[1].socket.out != both[1].socket.fd {
		t.Error("the ports poll otherwise than they were opened")
	}
	batch := make([]*packet.Frame, 1)
	for tries := 0; both[0].Receive(batch) == 0; tries++ {
		if tries == 10_000 {
			t.Fatal("no frame came")
		}
		time.Sleep(time.Millisecond)
	}
	memory.Sweep()
	if both[1].Transmit(batch) != 1 {
		t.Error("not sent")
	}
	both[1].Flush()
	t.Logf("%+v", both[1].Info())
	if err := both[0].SetLocal(nil); err == nil {
		t.Error("a port without a filter takes addresses")
	}
	for i, p := range both {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if memory.Sweep(); len(memory.umems) != 1-i {
			t.Errorf("%d memories are left", len(memory.umems))
		}
	}
}
