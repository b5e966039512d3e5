package afxdp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
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
	"github.com/safchain/ethtool"
)

// Two namespaces talk TCP through two ports and a forwarder that knows no
// addresses, both ways at once; what arrives is what was sent. With their
// checksum offload on, the pods' kernels complete no checksum at all.
func TestTCPThroughTwoPorts(t *testing.T) {
	for _, c := range []struct {
		a, b    Mode
		offload bool
		mtu     int
	}{
		{Native, Native, true, 1500}, {Generic, Generic, true, 1500}, {Native, Generic, true, 1500}, {Native, Native, false, 1500},
		{Native, Native, true, 9000}, {Native, Native, false, 9000}, {Generic, Native, true, 9000},
	} {
		t.Run(fmt.Sprintf("%s to %s, offload %v, MTU %d", c.a, c.b, c.offload, c.mtu), func(t *testing.T) {
			n := newNode(t, 4096)
			a, b := n.tcpPod(t, "a", podOptions{c.a, c.offload, c.mtu}), n.tcpPod(t, "b", podOptions{c.b, c.offload, c.mtu})
			a.address(t, "10.9.0.1", "10.9.0.2", "b")
			b.address(t, "10.9.0.2", "10.9.0.1", "a")
			stop := forward(a.port, b.port)
			defer stop()
			server := listen(t, b.ns, "10.9.0.2:80")
			var client net.Conn
			var err error
			a.ns.Do(t, func() {
				client, err = (&net.Dialer{Timeout: 10 * time.Second}).Dial("tcp4", "10.9.0.2:80")
			})
			if err != nil {
				t.Fatalf("%v; a %+v, b %+v", err, a.port.Stats(), b.port.Stats())
			}
			peer, err := server.Accept()
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, client, peer)
			if s := b.port.Stats(); c.mtu == 9000 && s.RxBytes+s.TxBytes < 2500*(s.RxPackets+s.TxPackets) { // acknowledgements among them
				t.Errorf("the segments are not those of the MTU: %+v", s)
			}
		})
	}
}

// podOptions is how a pod and its port are set.
type podOptions struct {
	mode    Mode
	offload bool
	mtu     int
}

func (n *node) tcpPod(t *testing.T, name string, o podOptions) *pod {
	t.Helper()
	p := &pod{ns: nstest.New(t)}
	nstest.AddVeth(t, n.ns, name, p.ns, "eth-"+name)
	setMTU(t, o.mtu, n.ns, name, p.ns, "eth-"+name)
	switch {
	case !o.offload:
		p.ns.Do(t, func() {
			if err := ports.DisableTxChecksum("eth-" + name); err != nil {
				t.Fatal(err)
			}
		})
	case o.mode == Generic: // native XDP turns segmentation off by itself
		p.disableSegmentation(t, "eth-"+name)
	}
	p.port = openIn(t, n.ns, n.umem, Options{Interface: name, Mode: o.mode})
	return p
}

func (p *pod) disableSegmentation(t *testing.T, link string) {
	t.Helper()
	p.ns.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Change(link, map[string]bool{"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false}); err != nil {
			t.Fatal(err)
		}
	})
}

func (p *pod) address(t *testing.T, own, peer, peerName string) {
	t.Helper()
	link := "eth-" + p.port.Name()
	p.ns.AddAddress(t, link, own+"/24")
	p.ns.AddNeighbour(t, link, peer, nstest.MAC("eth-"+peerName))
}

func listen(t *testing.T, n *nstest.Namespace, address string) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	n.Do(t, func() { l, err = net.Listen("tcp4", address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// forward moves frames between two ports until stop is called.
func forward(a, b ports.Port) (stop func()) {
	var done atomic.Bool
	var group sync.WaitGroup
	group.Go(func() { runForward(a, b, &done) })
	return func() {
		done.Store(true)
		group.Wait()
	}
}

func runForward(a, b ports.Port, done *atomic.Bool) {
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
		n := a.Receive(batch)
		b.Transmit(batch[:n])
		m := b.Receive(batch)
		a.Transmit(batch[:m])
		a.Flush()
		b.Flush()
		if n+m == 0 {
			poller.Wait(nil, 10*time.Millisecond)
		}
	}
}

// exchange sends a few megabytes each way at once and compares digests.
func exchange(t *testing.T, a, b net.Conn) {
	t.Helper()
	const size = 4 << 20
	var group sync.WaitGroup
	var sent, received [2]hash.Hash
	deadline := time.Now().Add(30 * time.Second)
	for i, way := range [][2]net.Conn{{a, b}, {b, a}} {
		way[0].SetDeadline(deadline)
		sent[i], received[i] = sha256.New(), sha256.New()
		source := rand.NewChaCha8([32]byte{byte(i)})
		group.Go(func() {
			if _, err := io.CopyN(io.MultiWriter(way[0], sent[i]), source, size); err != nil {
				t.Errorf("way %d: send: %v", i, err)
			}
		})
		group.Go(func() {
			if _, err := io.CopyN(received[i], way[1], size); err != nil {
				t.Errorf("way %d: receive: %v", i, err)
			}
		})
	}
	group.Wait()
	for i := range sent {
		if got, want := received[i].Sum(nil), sent[i].Sum(nil); !bytes.Equal(got, want) {
			t.Errorf("way %d: digest %x, sent %x", i, got, want)
		}
	}
	a.Close()
	b.Close()
}
