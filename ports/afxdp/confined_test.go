package afxdp

import (
	"testing"
	"time"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/porttest"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// TestAdoptConfined: a process without any capability adopts two ports of one memory,
// and frames pass them both ways. The programs stay with the process that opened them.
func TestAdoptConfined(t *testing.T) {
	if confinetest.Inside() {
		insideAdopt(t)
		return
	}
	node := newTwoPods(t, Native)
	before := node.open(t)
	defer before.memory.Close()
	var fds []int
	for _, p := range before.ports {
		p.Rest()
		fds = append(fds, porttest.Copies(t, p.Descriptors())...)
	}
	child := confinetest.Start(t, node.node, "TestAdoptConfined", fds)
	frame := string(pt.UDP4(pt.Options{SrcPort: 7, Payload: make([]byte, 20)}))
	if err := node.wires[0].Send([]byte(frame)); err != nil {
		t.Fatal(err)
	}
	child.Wait(t)
	if got, err := node.wires[1].Receive(time.Minute); err != nil || string(got) != frame {
		t.Errorf("%x came, error %v", got, err)
	}
	for _, p := range before.ports {
		p.Close()
	}
}

// insideAdopt sends what pod a has sent to pod b.
func insideAdopt(t *testing.T) {
	t.Helper()
	memory := NewMemory(256, 2)
	_, err := memory.Adopt(Options{Interface: "a", Mode: Native}, porttest.Copies(t, []int{3, 4, 5, 6, 7}))
	t.Log("not Attached: ", err)
	if err == nil {
		t.Fatal("it loads a program without any capability")
	}
	var both [2]*Port
	for i, name := range []string{"a", "b"} {
		first := 3 + i*Descriptors
		both[i], err = memory.Adopt(Options{Interface: name, Mode: Native, Attached: true}, []int{first, first + 1, first + 2, first + 3, first + 4})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range both {
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := p.Relink(); err != nil {
			t.Error(err)
		}
	}
	batch := make([]*packet.Frame, 1)
	for tries := 0; both[0].Receive(batch) == 0; tries++ {
		if tries == 10_000 {
			t.Fatal("no frame came")
		}
		time.Sleep(time.Millisecond)
	}
	if both[1].Transmit(batch) != 1 {
		t.Error("not sent")
	}
	both[1].Flush()
	t.Logf("%+v", both[1].Info())
	t.Log("SetLocal: ", both[0].SetLocal(nil))
	for _, p := range both {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
