package answer

import (
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports/afxdp"
)

// Two pods on AF_XDP, native, with an MTU of 9000: TCP goes through the switch
// in segments of that size, tracked and with its addresses translated.
func TestJumboFrames(t *testing.T) {
	node := nstest.New(t)
	p, err := pipeline.NewPipeline(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memory := afxdp.NewMemory(512, 2)
	t.Cleanup(func() {
		if err := p.Local.Close(); err != nil {
			t.Error(err)
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	client, server := nstest.New(t), nstest.New(t)
	for no, pod := range map[uint32]*nstest.Namespace{1: client, 2: server} {
		jumboPort(t, p, memory, node, pod, no)
	}
	apply(t, p.Local.Switch, `
table=0, priority=1,arp actions=NORMAL
table=0, priority=2,ip actions=ct(table=1,zone=5,nat)
table=1, priority=2,ip,ct_state=+new,nw_dst=10.9.0.9 actions=ct(commit,zone=5,nat(dst=10.9.0.2)),NORMAL
table=1, priority=1,ip actions=NORMAL
`)
	client.AddAddress(t, "eth1", "10.9.0.1/24")
	server.AddAddress(t, "eth2", "10.9.0.2/24")
	client.AddNeighbour(t, "eth1", "10.9.0.9", nstest.MAC("eth2"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Local.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	wantSameDigest(t, client, "10.9.0.9:80", server, "10.9.0.2:80")
	for _, port := range p.Switch.Ports() {
		s := port.Stats
		if s.TxPackets == 0 || s.TxErrors+s.RxErrors > 0 {
			t.Errorf("port %d: %+v", port.No, s)
		}
		if longest := max(s.RxBytes/max(1, s.RxPackets), s.TxBytes/max(1, s.TxPackets)); longest < 5000 {
			t.Errorf("port %d: %d bytes a frame on average, want segments of the MTU: %+v", port.No, longest, s)
		}
	}
}

// jumboPort gives the switch a port to a pod, both ends of the veth with an MTU
// of 9000.
func jumboPort(t *testing.T, p *pipeline.Pipeline, memory *afxdp.Memory, node, pod *nstest.Namespace, no uint32) {
	t.Helper()
	name := string(rune('0' + no))
	nstest.AddVeth(t, node, "sw"+name, pod, "eth"+name)
	for n, link := range map[*nstest.Namespace]string{node: "sw" + name, pod: "eth" + name} {
		if err := n.Links().LinkSetMTU(n.Link(t, link), 9000); err != nil {
			t.Fatal(err)
		}
	}
	node.Do(t, func() {
		port, err := memory.Open(afxdp.Options{Interface: "sw" + name, Mode: afxdp.Native})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Local.AddPort(no, port); err != nil {
			t.Fatal(err)
		}
	})
}

// apply gives a switch the entries of a dump.
func apply(t *testing.T, sw *dataplane.Switch, flows string) {
	t.Helper()
	prog, err := parse.Program(parse.Sources{Flows: parse.Text("flows", flows)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
}

// wantSameDigest sends some megabytes of TCP from one namespace to another: to
// is the address that the client connects to, at the one that is listened on.
func wantSameDigest(t *testing.T, client *nstest.Namespace, to string, server *nstest.Namespace, at string) {
	t.Helper()
	const size = 8 << 20
	var l net.Listener
	var out net.Conn
	var err error
	server.Do(t, func() { l, err = net.Listen("tcp", at) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client.Do(t, func() { out, err = (&net.Dialer{Timeout: 10 * time.Second}).Dial("tcp", to) })
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.SetDeadline(time.Now().Add(30 * time.Second))
	out.SetDeadline(time.Now().Add(30 * time.Second))
	sent, got := sha256.New(), sha256.New()
	done := make(chan error)
	go func() {
		_, err := io.CopyN(io.MultiWriter(out, sent), rand.NewChaCha8([32]byte{1}), size)
		done <- err
	}()
	if _, err := io.CopyN(got, in, size); err != nil {
		t.Errorf("receive: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("send: %v", err)
	}
	if [32]byte(sent.Sum(nil)) != [32]byte(got.Sum(nil)) {
		t.Error("what arrived is not what was sent")
	}
}
