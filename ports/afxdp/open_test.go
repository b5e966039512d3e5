package afxdp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

func TestOpenRefusals(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "sw0", b, "eth0")
	nstest.AddVeth(t, a, "jumbo", b, "eth1")
	setMTU(t, 9001, a, "jumbo", b, "eth1")
	u := umemFor(t, 256)
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Interface: "nosuch"}, "nosuch: Link not found"},
		{Options{Interface: "sw0", Mode: "fast"}, `mode "fast"`},
		{Options{Interface: "sw0", Ring: 100}, "rings of 100"},
		{Options{Interface: "sw0", Ring: 32}, "at least 64"},
		{Options{Interface: "sw0", Queue: 1}, "queue 1 of 1"},
		{Options{Interface: "sw0", BusyPoll: BusyPoll{Time: 1500}}, "busy polling of 1.5µs: want whole microseconds"},
		{Options{Interface: "sw0", BusyPoll: BusyPoll{Time: time.Microsecond, Budget: 1 << 16}}, "a budget of 65536"},
		{Options{Interface: "sw0", BusyPoll: BusyPoll{Budget: 8}}, "a budget and no time"},
		{Options{Interface: "sw0", Mode: ZeroCopy}, "zero-copy: "},
		{Options{Interface: "jumbo"}, "MTU 9001: frames of an MTU up to 9000 are gathered"},
		{Options{Interface: "jumbo", Mode: ZeroCopy}, "more than one is not for zero-copy"},
	} {
		a.Do(t, func() {
			p, err := Open(u, c.options)
			if err == nil {
				p.Close()
			}
			wantError(t, err, c.want)
		})
	}
	if u.Free() != u.Frames() {
		t.Errorf("%d frames of %d are free after refusals", u.Free(), u.Frames())
	}
	if programOn(t, a, "sw0") != 0 {
		t.Error("a refused port left its program behind")
	}
}

// Auto is native, and generic with the reason where the driver refuses: a
// veth's, when the MTU does not fit into a page and the program takes no frames
// of many buffers.
func TestAutoFallsBack(t *testing.T) {
	for _, c := range []struct {
		mtu         int
		multiBuffer bool
		mode, why   string
	}{
		{1500, false, "native, copy", "the driver runs XDP programs"},
		{3700, false, "generic, copy", "not native: attach XDP"},
		{3700, true, "native, copy", "the driver runs XDP programs"},
	} {
		a, b := nstest.New(t), nstest.New(t)
		nstest.AddVeth(t, a, "sw0", b, "eth0")
		setMTU(t, c.mtu, a, "sw0", b, "eth0")
		u := umemFor(t, 256)
		u.multiBuffer = u.multiBuffer && c.multiBuffer
		p := openIn(t, a, u, Options{Interface: "sw0", Ring: 64})
		info := p.Info()
		if info.Mode != c.mode || !strings.HasPrefix(info.Why, c.why) || info.MTU != c.mtu {
			t.Errorf("MTU %d: %+v, want %q because %q", c.mtu, info, c.mode, c.why)
		}
	}
}

// A second port on the same interface is refused, the first goes on.
func TestSecondPortIsRefused(t *testing.T) {
	n := newNode(t, 512)
	a, b := n.addPod(t, "a", Native), n.addPod(t, "b", Native)
	n.ns.Do(t, func() {
		p, err := Open(n.umem, Options{Interface: "a", Mode: Native})
		if err == nil {
			p.Close()
		}
		wantError(t, err, "has an XDP program already")
	})
	carry(t, a, b, 1)
}

// A link that is set down loses what is transmitted meanwhile, counted, and
// works again when it is up.
func TestLinkDownAndUp(t *testing.T) {
	n := newNode(t, 512)
	a, b := n.addPod(t, "a", Native), n.addPod(t, "b", Native)
	link := n.ns.Link(t, "b")
	if err := n.ns.Links().LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		one := make([]*packet.Frame, 1)
		n.umem.Get(one)
		one[0].SetBytes(testFrame(byte(100 + i)))
		b.port.Transmit(one)
		b.port.Flush()
	}
	s := b.port.Stats()
	if s.Reasons[ports.TxLinkDown.String()] == 0 || s.TxPackets+s.TxDropped != 100 {
		t.Errorf("stats %+v: want 100 frames, most of them dropped", s)
	}
	if b.port.Info().Up {
		t.Error("up, though the link is down")
	}
	if err := n.ns.Links().LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the port is up", func() bool { return b.port.Info().Up })
	nstest.Until(t, "it sends again", func() bool {
		b.port.Flush()
		return b.port.Stats().TxPackets > 0 && !b.port.isDown()
	})
	carry(t, a, b, 7)
}

// TestPodsEndDown: the kernel takes what is sent to a pod whose end is down, and loses
// it. The port counts it as dropped, once it was seen, and sends when the end is up again.
func TestPodsEndDown(t *testing.T) {
	n := newNode(t, 512)
	a := n.addPod(t, "a", Native)
	send := func() int {
		one := make([]*packet.Frame, 1)
		n.umem.Get(one)
		one[0].SetBytes(testFrame(1))
		defer a.port.Flush()
		return a.port.Transmit(one)
	}
	if err := a.ns.Links().LinkSetDown(a.ns.Link(t, "eth0")); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the port sees it", func() bool { return !a.port.Info().Up })
	if sent := send(); sent != 0 || a.port.Stats().Reasons[ports.TxLinkDown.String()] != 1 {
		t.Errorf("%d sent: %+v", sent, a.port.Stats())
	}
	a.ns.SetUp(t, "eth0")
	nstest.Until(t, "it sends again, though nobody asks for its link", func() bool { return send() == 1 })
}

func (p *Port) isDown() bool {
	p.tx.Lock()
	defer p.tx.Unlock()
	return p.tx.down
}

// programOn is the id of the XDP program on a link, 0 when it has none.
func programOn(t *testing.T, n *nstest.Namespace, link string) uint32 {
	t.Helper()
	if xdp := n.Link(t, link).Attrs().Xdp; xdp != nil && xdp.Attached {
		return xdp.ProgId
	}
	return 0
}

func TestCloseRemovesTheProgram(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		n := newNode(t, 256)
		a := n.addPod(t, "a", mode)
		if programOn(t, n.ns, "a") == 0 {
			t.Fatalf("%s: no program is attached", mode)
		}
		a.port.Close()
		if id := programOn(t, n.ns, "a"); id != 0 {
			t.Errorf("%s: program %d stays on the link", mode, id)
		}
	}
}

// childInterface is set for the child process of TestKilledProcess.
const childInterface = "ANTRAIL_TEST_AFXDP_INTERFACE"

// A process that is killed leaves no program on the link: the kernel removes
// what a bpf_link attached.
func TestKilledProcess(t *testing.T) {
	if name := os.Getenv(childInterface); name != "" {
		holdPort(name)
		return
	}
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "sw0", b, "eth0")
	child := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
	child.Env = append(os.Environ(), childInterface+"=sw0")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = os.Stderr
	a.Do(t, func() { err = child.Start() })
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "open\n" {
		t.Errorf("the child said %q, %v", line, err)
	}
	if programOn(t, a, "sw0") == 0 {
		t.Error("the child attached no program")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	nstest.Until(t, "the program goes with its process", func() bool { return programOn(t, a, "sw0") == 0 })
}

// holdPort is the child: it opens a port, says so, and waits to be killed.
func holdPort(name string) {
	u, err := NewUMEM(256)
	if err == nil {
		_, err = Open(u, Options{Interface: name})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	time.Sleep(time.Minute) // longer than any test, and yet not for ever
}
