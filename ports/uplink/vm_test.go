//go:build vm

package uplink

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
)

// These tests need a kernel with VLANs, bonds and GRE (hack/test-vm boots one).

// over are commands that make the link up0 on a link.
var over = map[string][]string{
	"vlan":         {"link add link %s name up0 type vlan id 7"},
	"bond":         {"link add up0 type bond mode active-backup miimon 50", "link set %[1]s down", "link set %[1]s master up0"},
	"vlan on bond": {"link add bond0 type bond mode active-backup miimon 50", "link set %[1]s down", "link set %[1]s master bond0", "link set bond0 up", "link add link bond0 name up0 type vlan id 7"},
}

// ip runs ip(8) in a namespace.
func ip(t *testing.T, n *nstest.Namespace, command string) {
	t.Helper()
	if out, err := n.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", command, err, out)
	}
}

// above makes up0 of two Nodes' wire, and gives it their addresses.
func above(t *testing.T, kind string) *pair {
	t.Helper()
	p := &pair{a: nstest.New(t), b: nstest.New(t), aAddr: nodes["IPv4"][0].Addr(), bAddr: nodes["IPv4"][1].Addr()}
	nstest.AddVeth(t, p.a, "eth0", p.b, "eth1")
	for i, n := range []*nstest.Namespace{p.a, p.b} {
		for _, c := range over[kind] {
			if strings.Contains(c, "%") {
				c = fmt.Sprintf(c, []string{"eth0", "eth1"}[i])
			}
			ip(t, n, c)
		}
		ip(t, n, "link set up0 up")
		ip(t, n, "address add "+nodes["IPv4"][i].String()+" dev up0")
	}
	return p
}

// TestVMLinks: frames go both ways by the program on a VLAN, a bond or both, in each
// tunnel, and coalesced segments come whole by the sockets.
func TestVMLinks(t *testing.T) {
	for link := range over {
		for _, kind := range kinds {
			t.Run(link+"/"+kind.String(), func(t *testing.T) {
				p := above(t, link)
				p.openOn(t, "up0", kind)
				inner := pt.TCP4(pt.Options{Payload: []byte("by the kernel")})
				send(t, p.port, p.bAddr, frameOf(inner))
				arrives(t, p.far, inner, p.aAddr, p.bAddr)
				p.await(t, nstest.MAC("eth1"))
				sent, came := p.cardSent(), p.cardCame()
				send(t, p.port, p.bAddr, frameOf(inner))
				arrives(t, p.far, inner, p.aAddr, p.bAddr)
				send(t, p.far, p.aAddr, frameOf(inner))
				arrives(t, p.port, inner, p.bAddr, p.aAddr)
				if p.cardSent() != sent+1 || p.cardCame() != came+1 {
					t.Errorf("%d sent and %d received by the link's program, want 1 and 1", p.cardSent()-sent, p.cardCame()-came)
				}
				p.coalesced(t, inner)
			})
		}
	}
}

// coalesced has the other Node send frames of one flow and one length at once, which its
// kernel gives to the wire as one datagram to be cut: a veth cuts nothing.
func (p *pair) coalesced(t *testing.T, inner []byte) {
	t.Helper()
	var batch []*packet.Frame
	for range 5 {
		f := frameOf(inner)
		f.Tunnel = packet.Tunnel{Dst: p.aAddr, ID: 7}
		batch = append(batch, f)
	}
	if p.far.Transmit(batch) != len(batch) {
		t.Fatalf("not sent: %+v", p.far.Stats())
	}
	for range 5 {
		arrives(t, p.port, inner, p.bAddr, p.aAddr)
	}
	if s := p.port.Stats(); s.RxErrors+s.RxDropped > 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestVMKernelsTunnels has the kernel's own device of each kind at the other end: echo
// requests go in and are answered.
func TestVMKernelsTunnels(t *testing.T) {
	const far = "02:00:00:00:00:99"
	for kind, device := range map[tunnel.Kind]string{
		tunnel.KindGRE:    "gretap key 7 local %s remote %s",
		tunnel.KindGeneve: "geneve id 7 remote %[2]s",
		tunnel.KindVXLAN:  "vxlan id 7 dstport 4789 local %s remote %s",
	} {
		t.Run(kind.String(), func(t *testing.T) {
			p := wired(t, "IPv4")
			ip(t, p.b, "link add tun0 address "+far+" type "+fmt.Sprintf(device, p.bAddr, p.aAddr))
			ip(t, p.b, "address add 10.1.0.2/24 dev tun0")
			ip(t, p.b, "link set tun0 up")
			ip(t, p.b, "neighbour add 10.1.0.1 lladdr 02:00:00:00:00:11 dev tun0")
			p.a.AddNeighbour(t, "eth0", p.bAddr.String(), nstest.MAC("eth1"))
			p.openPort(t, "eth0", kind)
			p.await(t, nstest.MAC("eth1"))
			o := pt.Options{
				EthSrc: [6]byte{2, 0, 0, 0, 0, 0x11}, EthDst: [6]byte(must(net.ParseMAC(far))),
				Src: netip.MustParseAddr("10.1.0.1"), Dst: netip.MustParseAddr("10.1.0.2"), Payload: []byte("through the kernel's own"),
			}
			sent := p.cardSent()
			send(t, p.port, p.bAddr, frameOf(pt.ICMPEcho4(o)))
			answer := echoReply(t, p)
			if string(answer[packet.EthernetLen+packet.IPv4Len+8:]) != string(o.Payload) {
				t.Errorf("the answer is %x", answer)
			}
			if p.cardSent() != sent+1 || p.cardCame() == 0 {
				t.Errorf("%d sent and %d received by the card", p.cardSent()-sent, p.cardCame())
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// echoReply waits for the answer to an echo request.
func echoReply(t *testing.T, p *pair) []byte {
	t.Helper()
	batch := make([]*packet.Frame, 1)
	for range 5000 {
		if p.port.Receive(batch) == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		b := append([]byte{}, batch[0].Bytes()...)
		packet.Release(batch)
		if l := packet.ParseLayers(b); l.Proto == packet.ProtoICMP && b[l.L4] == 0 {
			return b
		}
	}
	t.Fatalf("no answer: %+v", p.port.Stats())
	return nil
}
