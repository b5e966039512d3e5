package afxdp

import (
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// node is a namespace with one UMEM and any number of ports on it.
type node struct {
	ns   *nstest.Namespace
	umem *UMEM
}

// pod is a namespace with eth0, its port on the node and the wire at eth0.
type pod struct {
	ns   *nstest.Namespace
	port *Port
	wire *nstest.Wire
}

func newNode(t *testing.T, frames int) *node {
	return &node{ns: nstest.New(t), umem: umemFor(t, frames)}
}

func (n *node) addPod(t *testing.T, name string, mode Mode) *pod {
	t.Helper()
	p := &pod{ns: nstest.New(t)}
	nstest.AddVeth(t, n.ns, name, p.ns, "eth0")
	p.port = openIn(t, n.ns, n.umem, Options{Interface: name, Mode: mode, Ring: 64})
	p.wire = nstest.OpenWire(t, p.ns, "eth0")
	return p
}

// testFrame is a broadcast that no kernel answers, told apart by its last byte.
func testFrame(mark byte) []byte {
	b := make([]byte, 80)
	copy(b, "\xff\xff\xff\xff\xff\xff\x02mark\x88\xb5")
	b[79] = mark
	return b
}

// carry sends one frame from a to b through their ports and says whether it
// was the very same frame of the UMEM.
func carry(t *testing.T, from, to *pod, mark byte) {
	t.Helper()
	if err := from.wire.Send(testFrame(mark)); err != nil {
		t.Fatal(err)
	}
	f := receiveMark(t, from.port, mark)
	if !to.port.umem.owns(f[0]) {
		t.Fatal("the frame is not of the UMEM that both ports share")
	}
	if to.port.Transmit(f) != 1 {
		t.Fatalf("not accepted: %+v", to.port.Stats())
	}
	to.port.Flush()
	wantFrame(t, to, mark)
}

// wantFrame fails unless the frame comes out at a pod.
func wantFrame(t *testing.T, to *pod, mark byte) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		b, err := to.wire.Receive(100 * time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 80 && b[79] == mark {
			return
		}
	}
	t.Fatalf("frame %d did not come out; stats %+v", mark, to.port.Stats())
}

func receiveMark(t *testing.T, p *Port, mark byte) []*packet.Frame {
	t.Helper()
	var one [1]*packet.Frame
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if p.Receive(one[:]) == 1 {
			if b := one[0].Bytes(); len(b) == 80 && b[79] == mark {
				return one[:]
			}
			packet.Release(one[:])
		}
	}
	t.Fatalf("frame %d did not come in; stats %+v", mark, p.Stats())
	return nil
}

// The UMEM outlives the port it was registered with: later ports share it
// through any port that lives, and it is registered again when none does.
func TestUMEMOutlivesItsPorts(t *testing.T) {
	n := newNode(t, 1024)
	a, b := n.addPod(t, "a", Native), n.addPod(t, "b", Generic)
	carry(t, a, b, 1)
	a.port.Close() // the donor
	c := n.addPod(t, "c", Native)
	carry(t, b, c, 2)
	carry(t, c, b, 3)
	b.port.Close()
	c.port.Close()
	if got := n.umem.Free(); got != n.umem.Frames() {
		t.Fatalf("%d frames of %d are free with all ports closed", got, n.umem.Frames())
	}
	d, e := n.addPod(t, "d", Native), n.addPod(t, "e", Native)
	carry(t, d, e, 4)
}

// When the donor's netdev vanishes with its pod, the next port finds another
// donor, and the frames that the kernel held for the dead one come back.
func TestDonorVanishes(t *testing.T) {
	n := newNode(t, 1024)
	a, b := n.addPod(t, "a", Native), n.addPod(t, "b", Native)
	carry(t, a, b, 1)
	if err := a.ns.Links().LinkDel(a.ns.Link(t, "eth0")); err != nil {
		t.Fatal(err)
	}
	waitDown(t, a.port)
	c := n.addPod(t, "c", Native) // a.port is not closed yet
	carry(t, b, c, 2)
	fds := []unix.PollFd{{Fd: int32(a.port.FD()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 10); n != 0 || err != nil {
		t.Errorf("poll on the dead port: %d, %v, events %#x: a worker would spin", n, err, fds[0].Revents)
	}
	late := make([]*packet.Frame, 4)
	n.umem.Get(late)
	for _, f := range late {
		f.SetBytes(testFrame(9))
	}
	a.port.Transmit(late)
	a.port.Flush()
	if got := a.port.Receive(late); got != 0 {
		t.Errorf("received %d frames from a link that is gone", got)
	}
	for _, p := range []*pod{a, b, c} {
		if err := p.port.Close(); err != nil {
			t.Errorf("close %s: %v", p.port.Name(), err)
		}
	}
	if got := n.umem.Free(); got != n.umem.Frames() {
		t.Errorf("%d frames of %d are free", got, n.umem.Frames())
	}
	// All donors are dead but not forgotten: the memory is registered again.
	d := n.addPod(t, "d", Native)
	if err := d.ns.Links().LinkDel(d.ns.Link(t, "eth0")); err != nil {
		t.Fatal(err)
	}
	waitDown(t, d.port)
	e, f := n.addPod(t, "e", Native), n.addPod(t, "f", Native)
	carry(t, e, f, 3)
}

// A pod's namespace is deleted under its port: the port is down, closes
// cleanly, and its frames come back.
func TestPodNamespaceVanishes(t *testing.T) {
	n := newNode(t, 512)
	a := n.addPod(t, "a", Native)
	pod := nstest.New(t)
	nstest.AddVeth(t, n.ns, "b", pod, "eth0")
	b := openIn(t, n.ns, n.umem, Options{Interface: "b", Ring: 64})
	pod.Remove()
	waitDown(t, b)
	one := make([]*packet.Frame, 1)
	n.umem.Get(one)
	one[0].SetBytes(testFrame(1))
	b.Transmit(one)
	b.Flush()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if got, want := n.umem.Free(), n.umem.Frames()-64; got != want { // a's fill ring
		t.Errorf("%d frames are free, want %d", got, want)
	}
	c := n.addPod(t, "c", Native)
	carry(t, a, c, 2)
}

// A batch longer than the ring is sent whole, also where one sendto sends 32
// frames and no more.
func TestBatchLongerThanTheRing(t *testing.T) {
	for _, budget := range []int{64, 32} {
		n := newNode(t, 1024)
		a := n.addPod(t, "a", Native)
		// A kernel that does not know the option is at 32 anyway.
		_ = unix.SetsockoptInt(a.port.socket.out, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, budget)
		batch := make([]*packet.Frame, 200)
		n.umem.Get(batch)
		for i, f := range batch {
			f.SetBytes(testFrame(byte(i)))
		}
		if got := a.port.Transmit(batch); got != len(batch) {
			t.Errorf("budget %d: %d frames of %d accepted: %+v", budget, got, len(batch), a.port.Stats())
		}
		a.port.Flush()
		for i := range batch {
			b, err := a.wire.Receive(time.Minute)
			if err != nil || len(b) != 80 || b[79] != byte(i) {
				t.Fatalf("budget %d: frame %d is %x, %v", budget, i, b, err)
			}
		}
	}
}

func waitDown(t *testing.T, p *Port) {
	t.Helper()
	nstest.Until(t, p.Name()+" is down", func() bool { return !p.Info().Up })
}

// With no free frame, a port drops and counts; it goes on when frames come
// back.
func TestNoFreeFrames(t *testing.T) {
	n := newNode(t, 128) // two ports take them all
	a, b := n.addPod(t, "a", Native), n.addPod(t, "b", Native)
	if free := n.umem.Free(); free != 0 {
		t.Fatalf("%d frames are free with all fill rings full", free)
	}
	foreign := packet.NewFrame(make([]byte, 512), nil)
	foreign.SetBytes(testFrame(1))
	if b.port.Transmit([]*packet.Frame{foreign}) != 0 {
		t.Error("accepted a frame without a frame to copy it into")
	}
	if s := b.port.Stats(); s.Reasons[ports.TxNoFrame.String()] != 1 {
		t.Errorf("stats %+v: want one %q", s, ports.TxNoFrame)
	}
	for range 200 {
		if err := a.wire.Send(testFrame(2)); err != nil {
			t.Fatal(err)
		}
	}
	held := make([]*packet.Frame, 64)
	got := a.port.Receive(held)
	for range 10 {
		if err := a.wire.Send(testFrame(2)); err != nil {
			t.Fatal(err)
		}
	}
	s := a.port.Stats()
	if got != 64 || s.Reasons[ports.RxNoFrame.String()] < 10 {
		t.Errorf("received %d, stats %+v: want 64, then at least ten without a frame", got, s)
	}
	packet.Release(held)
	a.port.Receive(nil) // refills
	carry(t, a, b, 3)
}

func TestUMEMRefusesToCloseInUse(t *testing.T) {
	n := newNode(t, 256)
	a := n.addPod(t, "a", Native)
	wantError(t, n.umem.Close(), "1 ports are open")
	one := make([]*packet.Frame, 1)
	n.umem.Get(one)
	a.port.Close()
	wantError(t, n.umem.Close(), "1 frames are in use")
	packet.Release(one)
	if err := n.umem.Close(); err != nil {
		t.Error(err)
	}
	n.ns.Do(t, func() {
		_, err := Open(n.umem, Options{Interface: "a"})
		wantError(t, err, "the UMEM is closed")
	})
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}
