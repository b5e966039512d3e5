package answer

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// Neighbour discovery through the pipeline of node-a of examples/web-app, with
// whole frames: what arrives where, and which table drops the rest.

// neighbour is a port of node-a with its addresses.
type neighbour struct {
	port      string
	mac       config.MAC
	ip, local netip.Addr // of the pod range, and link-local
}

func newNeighbour(port, mac, ip, local string) neighbour {
	n := neighbour{port: port, ip: netip.MustParseAddr(ip), local: netip.MustParseAddr(local)}
	if err := n.mac.UnmarshalText([]byte(mac)); err != nil {
		panic(err)
	}
	return n
}

var (
	clientA = newNeighbour("client-a", "5e:b5:e3:a6:90:b7", "fd00:10:10::26", "fe80::5cb5:e3ff:fea6:90b7")
	webA    = newNeighbour("web-a", "fa:b7:53:74:21:a6", "fd00:10:10::24", "fe80::f8b7:53ff:fe74:21a6")
	router  = newNeighbour("antrea-gw0", "ba:5e:d1:55:aa:c0", "fd00:10:10::1", "fe80::b85e:d1ff:fe55:aac0")

	allNodes    = neighbour{mac: config.MAC{0x33, 0x33, 0, 0, 0, 1}, ip: netip.MustParseAddr("ff02::1")}
	unspecified = netip.IPv6Unspecified()
)

// at is the same neighbour with another address.
func (n neighbour) at(ip netip.Addr) neighbour { n.ip = ip; return n }

// solicit asks for a target; mac is what the option says of the asker.
func solicit(from, to neighbour, target netip.Addr, mac *config.MAC) []byte {
	return discovery(packet.ICMPv6NeighborSolicit, 0, from, to, target, packet.NDOptionSourceLinkAddr, mac)
}

// advertise tells of a target; unasked when it is to all nodes. mac is what the
// option says of the target.
func advertise(from, to neighbour, target netip.Addr, mac *config.MAC) []byte {
	const override = 1 << 29
	return discovery(packet.ICMPv6NeighborAdvert, override, from, to, target, packet.NDOptionTargetLinkAddr, mac)
}

func discovery(typ uint8, flags uint32, from, to neighbour, target netip.Addr, option byte, mac *config.MAC) []byte {
	o := pt.Options{EthSrc: from.mac, EthDst: to.mac, Src: from.ip, Dst: to.ip, TTL: 255, Payload: target.AsSlice()}
	if mac != nil {
		o.Payload = append(append(o.Payload, option, 1), mac[:]...)
	}
	return pt.ICMP6(o, typ, 0, flags)
}

// routerAdvert offers a default route for half an hour (RFC 4861, section 4.2).
func routerAdvert(from, to neighbour) []byte {
	o := pt.Options{EthSrc: from.mac, EthDst: to.mac, Src: from.ip, Dst: to.ip, TTL: 255, Payload: make([]byte, 8)}
	return pt.ICMP6(o, packet.ICMPv6RouterAdvert, 0, 64<<24|1800)
}

// ndSwitch is node-a's switch over memory ports.
type ndSwitch struct {
	*Answers
	ports map[uint32]*memory.Port
}

func newNDSwitch(t *testing.T) *ndSwitch {
	t.Helper()
	p, err := pipeline.Manifests{Path: "../../examples/web-app", Node: "node-a"}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Local.Close(); err != nil {
			t.Error(err)
		}
	})
	answers := New(p)
	ports, err := answers.addMemoryPorts([]string{config.DefaultTunnel})
	if err != nil {
		t.Fatal(err)
	}
	return &ndSwitch{answers, ports}
}

// send carries a frame and tells the ports where it arrived as it was, sorted, or
// the table that dropped it.
func (s *ndSwitch) send(t *testing.T, from neighbour, frame []byte) string {
	t.Helper()
	before := s.drops()
	f := packet.NewFrame(make([]byte, packet.Headroom+len(frame)), nil)
	f.SetBytes(slices.Clone(frame))
	for _, p := range s.ports {
		if p.Name() == from.port && p.Inject(f) != 1 {
			t.Fatalf("%s takes no frame", from.port)
		}
	}
	s.Local.Poll()
	var arrived []string
	one := make([]*packet.Frame, 1)
	for _, p := range s.ports {
		for p.Collect(one) == 1 {
			if !slices.Equal(one[0].Bytes(), frame) {
				t.Errorf("%s got %x, sent was %x", p.Name(), one[0].Bytes(), frame)
			}
			arrived = append(arrived, p.Name())
			packet.Release(one)
		}
	}
	for table, n := range s.drops() {
		if n != before[table] {
			arrived = append(arrived, "dropped in "+table)
		}
	}
	slices.Sort(arrived)
	return strings.Join(arrived, " ")
}

// drops counts the packets that each table has dropped. The key has the reason, unless
// an entry dropped them.
func (s *ndSwitch) drops() map[string]uint64 {
	all := map[string]uint64{}
	for _, t := range s.tableRecords() {
		for reason, n := range t.Drops {
			if reason != telemetry.DropByEntry.String() {
				all[t.Name+" by "+reason] += n
			} else {
				all[t.Name] += n
			}
		}
	}
	return all
}

const (
	toAll       = "antrea-gw0 db-a web-a" // what client-a sends to all; never into the tunnel
	spoofed     = "dropped in SpoofGuard"
	foreign     = "dropped in PipelineRootClassifier by foreign_mac"
	forbidden   = "dropped in PipelineRootClassifier by nd_forbidden"
	outOfPlace  = "dropped in IPv6"
	strangerIP6 = "fd00:10:10::66"
)

func TestNeighbourDiscovery(t *testing.T) {
	s := newNDSwitch(t)
	stranger := netip.MustParseAddr(strangerIP6)
	detecting, other := clientA.at(unspecified), &webA.mac
	atLocal := clientA.at(clientA.local)
	for _, c := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"solicitation", solicit(clientA, allNodes, router.ip, &clientA.mac), toAll},
		{"from the link-local address", solicit(atLocal, allNodes, router.ip, &clientA.mac), toAll},
		{"without option", solicit(clientA, allNodes, router.ip, nil), toAll},
		{"with another's MAC", solicit(clientA, allNodes, router.ip, other), outOfPlace},
		{"from another's address", solicit(clientA.at(webA.ip), allNodes, router.ip, &clientA.mac), spoofed},
		{"from another's link-local address", solicit(clientA.at(webA.local), allNodes, router.ip, &clientA.mac), spoofed},

		{"duplicates of the own address", solicit(detecting, allNodes, clientA.ip, nil), toAll},
		{"duplicates of the own link-local address", solicit(detecting, allNodes, clientA.local, nil), toAll},
		{"duplicates of another's address", solicit(detecting, allNodes, webA.ip, nil), spoofed},
		{"duplicates with an option", solicit(detecting, allNodes, clientA.ip, &clientA.mac), spoofed},
		{"an advertisement without source", advertise(detecting, allNodes, clientA.ip, &clientA.mac), spoofed},

		{"unsolicited advertisement", advertise(clientA, allNodes, clientA.ip, &clientA.mac), toAll},
		{"of the link-local address", advertise(atLocal, allNodes, clientA.local, &clientA.mac), toAll},
		{"of another's address", advertise(clientA, allNodes, webA.ip, &clientA.mac), outOfPlace},
		{"of the gateway's address", advertise(clientA, allNodes, router.ip, &clientA.mac), outOfPlace},
		{"of the gateway's link-local address", advertise(clientA, allNodes, router.local, &clientA.mac), outOfPlace},
		{"of nobody's address", advertise(clientA, allNodes, stranger, &clientA.mac), outOfPlace},
		{"of the own address with another's MAC", advertise(clientA, allNodes, clientA.ip, other), outOfPlace},
		{"to one pod, of another's address", advertise(clientA, webA, router.ip, &clientA.mac), outOfPlace},
		{"from another's address", advertise(clientA.at(webA.ip), allNodes, webA.ip, &clientA.mac), spoofed},

		{"router advertisement", routerAdvert(atLocal, allNodes), forbidden},
		{"router advertisement to one pod", routerAdvert(clientA, webA), forbidden},
	} {
		if got := s.send(t, clientA, c.frame); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNeighbourAnswers: an answer goes only to the asking Pod, because the request told the
// switch where that is.
func TestNeighbourAnswers(t *testing.T) {
	s := newNDSwitch(t)
	for _, c := range []struct {
		name     string
		from, to neighbour
		also     string // who else hears the question
	}{
		{"the gateway answers a pod", clientA, router, "db-a web-a"},
		{"a pod answers a pod", clientA, webA, "antrea-gw0 db-a"},
		{"a pod answers the gateway", router, webA, "client-a db-a"},
	} {
		heard := strings.Fields(c.also + " " + c.to.port)
		slices.Sort(heard)
		if got := s.send(t, c.from, solicit(c.from, allNodes, c.to.ip, &c.from.mac)); got != strings.Join(heard, " ") {
			t.Errorf("%s: the question arrived at %q, want %q", c.name, got, heard)
		}
		if got := s.send(t, c.to, advertise(c.to, c.from, c.to.ip, &c.to.mac)); got != c.from.port {
			t.Errorf("%s: the answer arrived at %q, want %s", c.name, got, c.from.port)
		}
		if got := s.send(t, c.to, advertise(c.to, c.from, c.to.ip, nil)); got != c.from.port {
			t.Errorf("%s: the answer without option arrived at %q, want %s", c.name, got, c.from.port)
		}
	}
}

// TestForgedDiscoveryTeachesNothing: where web-a is does not change by what
// client-a says, neither for who hears it nor for the switch.
func TestForgedDiscoveryTeachesNothing(t *testing.T) {
	s := newNDSwitch(t)
	s.send(t, webA, solicit(webA, allNodes, router.ip, &webA.mac))
	impostor := clientA
	impostor.mac = webA.mac
	for _, frame := range [][]byte{
		solicit(impostor, allNodes, router.ip, &webA.mac),
		solicit(impostor.at(unspecified), allNodes, clientA.ip, nil),
		advertise(impostor, allNodes, clientA.ip, &webA.mac),
	} {
		if got := s.send(t, clientA, frame); got != foreign {
			t.Errorf("web-a's MAC from client-a: %q, want %q", got, foreign)
		}
	}
	if got := s.send(t, router, advertise(router, webA, router.ip, &router.mac)); got != webA.port {
		t.Errorf("the answer to web-a arrived at %q", got)
	}
}
