package afxdp

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestMemoryGrows opens more ports than memory was planned for: a further UMEM
// serves them, frames pass between the two, and a port that closes makes room
// for another.
func TestMemoryGrows(t *testing.T) {
	umemFor(t, 64) // says so when there is no AF_XDP here
	n := nstest.New(t)
	m := NewMemory(64, 1)
	var pods []*pod
	add := func() *pod {
		p := &pod{ns: nstest.New(t)}
		name := fmt.Sprint("p", len(pods))
		nstest.AddVeth(t, n, name, p.ns, "eth0")
		n.Do(t, func() {
			var err error
			if p.port, err = m.Open(Options{Interface: name}); err != nil {
				t.Fatal(err)
			}
		})
		p.wire = nstest.OpenWire(t, p.ns, "eth0")
		pods = append(pods, p)
		return p
	}
	for range leastPorts + 1 {
		add()
	}
	first, last := pods[0].port, pods[leastPorts].port
	if len(m.umems) != 2 || first.umem == last.umem || m.umems[0].Ports() != leastPorts || m.umems[1].Ports() != 1 {
		t.Fatalf("%d UMEMs, %d ports on the first", len(m.umems), m.umems[0].Ports())
	}
	if err := pods[0].wire.Send(testFrame(1)); err != nil {
		t.Fatal(err)
	}
	f := receiveMark(t, first, 1)
	if last.Transmit(f) != 1 {
		t.Fatalf("a frame of another UMEM is not accepted: %+v", last.Stats())
	}
	last.Flush()
	wantFrame(t, pods[leastPorts], 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if p := add(); p.port.umem != m.umems[0] {
		t.Error("the room of a closed port is not used")
	}
	wantError(t, m.Close(), "ports are open")
	for _, p := range pods {
		if err := p.port.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestMemoryRefuses: a port that cannot be opened leaves nothing behind.
func TestMemoryRefuses(t *testing.T) {
	umemFor(t, 64)
	m := NewMemory(64, 1)
	_, err := m.Open(Options{Interface: "nowhere"})
	wantError(t, err, "nowhere")
	if len(m.umems) != 0 {
		t.Error("memory was kept for no port")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
