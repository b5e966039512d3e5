package afpacket

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
)

// twoPods are two pods with addresses, whose ports a forwarder connects that
// knows no addresses.
type twoPods struct {
	pods    [2]*nstest.Namespace
	between [2]*Port
	refused atomic.Uint64 // frames whose undone work a switch does not know
}

func newTwoPods(t *testing.T) *twoPods {
	t.Helper()
	node, p := nstest.New(t), &twoPods{}
	for i := range p.pods {
		p.pods[i] = nstest.New(t)
		nstest.AddVeth(t, node, fmt.Sprint("sw", i), p.pods[i], "eth0")
		p.pods[i].AddAddress(t, "eth0", fmt.Sprintf("10.9.0.%d/24", i+1))
		p.between[i] = openIn(t, node, Options{Interface: fmt.Sprint("sw", i)})
	}
	var done atomic.Bool
	var group sync.WaitGroup
	group.Go(func() { p.runForward(&done) })
	t.Cleanup(func() { done.Store(true); group.Wait() })
	return p
}

// runForward moves frames between two ports, and passes on only what a switch
// would.
func (p *twoPods) runForward(done *atomic.Bool) {
	a, b := p.between[0], p.between[1]
	batch := make([]*packet.Frame, 64)
	poller, err := ports.NewPoller()
	if err != nil {
		panic(err)
	}
	defer poller.Close()
	if err := errors.Join(poller.Watch(1, a), poller.Watch(2, b)); err != nil {
		panic(err)
	}
	for !done.Load() {
		n := p.forward(a, b, batch) + p.forward(b, a, batch)
		if n == 0 {
			poller.Wait(nil, 10*time.Millisecond)
		}
	}
}

func (p *twoPods) forward(from, to ports.Port, batch []*packet.Frame) int {
	n := from.Receive(batch)
	for i := range batch[:n] {
		l := packet.ParseLayers(batch[i].Bytes())
		if packet.AdmitOffload(batch[i], &l) {
			to.Transmit(batch[i : i+1])
		} else {
			p.refused.Add(1)
			packet.Release(batch[i : i+1])
		}
	}
	return n
}

// connect connects pod 0 with pod 1.
func (p *twoPods) connect(t *testing.T, address string) (client, server net.Conn) {
	t.Helper()
	var l net.Listener
	var err error
	p.pods[1].Do(t, func() { l, err = net.Listen("tcp4", address+":80") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.pods[0].Do(t, func() { client, err = net.DialTimeout("tcp4", address+":80", 20*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

// send sends megabytes from pod 0 to pod 1 and compares digests.
func (p *twoPods) send(t *testing.T, address string) {
	t.Helper()
	const size = 4 << 20
	client, server := p.connect(t, address)
	for _, c := range []net.Conn{client, server} {
		c.SetDeadline(time.Now().Add(60 * time.Second))
	}
	sent, received := sha256.New(), sha256.New()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := io.CopyN(io.MultiWriter(client, sent), rand.NewChaCha8([32]byte{1}), size); err != nil {
			t.Errorf("send: %v", err)
		}
	})
	if _, err := io.CopyN(received, server, size); err != nil {
		t.Errorf("receive: %v", err)
	}
	group.Wait()
	if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
		t.Error("what arrived is not what was sent")
	}
}

// TCP of two pods that have all their offloads comes through in large frames.
func TestTCPIsWhole(t *testing.T) {
	p := newTwoPods(t)
	p.send(t, "10.9.0.2")
	s := p.between[1].Stats()
	if s.TxPackets > 4<<20/1448 || s.TxErrors+s.TxDropped != 0 || p.refused.Load() != 0 {
		t.Errorf("4 MB left as %d frames: %+v", s.TxPackets, s)
	}
}

// A tunnel of the pods' own comes through when they cut its segments.
func TestTunnelOfThePods(t *testing.T) {
	p := newTwoPods(t)
	for _, pod := range p.pods {
		pod.Do(t, func() {
			if err := ports.DisableTunnelSegmentation("eth0"); err != nil {
				t.Fatal(err)
			}
		})
	}
	p.addTunnel(t)
	p.send(t, "10.10.0.2")
	if n := p.refused.Load(); n != 0 {
		t.Errorf("%d frames were refused", n)
	}
}

// When they do not, what is undone belongs to the packet inside, and is not taken
// for that of the packet itself.
func TestTunnelSegmentsAreRefused(t *testing.T) {
	p := newTwoPods(t)
	p.addTunnel(t)
	client, _ := p.connect(t, "10.10.0.2")
	if _, err := client.Write(make([]byte, 64<<10)); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "a segment is refused", func() bool { return p.refused.Load() > 0 })
}

// addTunnel puts VXLAN over the pods' eth0.
func (p *twoPods) addTunnel(t *testing.T) {
	t.Helper()
	for i, pod := range p.pods {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "vx0"
		err := pod.Links().LinkAdd(&netlink.Vxlan{
			LinkAttrs: attrs, VxlanId: 7, VtepDevIndex: pod.Link(t, "eth0").Attrs().Index, Port: 4789,
			Group: net.IPv4(10, 9, 0, byte(2-i)), UDPCSum: i == 0,
		})
		if err != nil {
			t.Fatal(err)
		}
		pod.AddAddress(t, "vx0", fmt.Sprintf("10.10.0.%d/24", i+1))
		pod.SetUp(t, "vx0")
	}
}
