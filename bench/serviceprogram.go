package bench

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

const (
	endpointsOfService = 3
	servicePort        = 53
	// Endpoints of a Service have ports in turn from lowestEndpoint on.
	lowestEndpoint = 20_000
	// Groups of the Services measured, and the first of the others.
	plainGroup, affinityGroup, lowestGroup = 900, 901, 1000
	affinitySeconds                        = 10_800 // Kubernetes' default
)

// The addresses of the two Services that are measured, and the first of the
// others.
var (
	plainIP    = netip.MustParseAddr("10.97.0.1")
	affinityIP = netip.MustParseAddr("10.97.0.2")
	lowestIP   = netip.MustParseAddr("10.98.0.0")
	gateway    = netip.MustParseAddr("10.10.0.1")
	elsewhere  = netip.MustParseAddr("10.10.1.0") // where the others' endpoints are
)

// serviceProgram is examples/two-nodes with so many Services and two more, those
// that are measured.
func serviceProgram(services int) (*flow.Program, error) {
	p, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return nil, err
	}
	b := &serviceBuilder{to: p, from: tables.New(tables.Config{
		Features: tables.Features{Proxy: true, AntreaPolicy: true, Egress: true}, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")},
	})}
	b.add(tables.ServiceAddress{Addr: plainIP, Group: plainGroup}, endpointsAt(receiver().Address.V4, 0))
	b.add(tables.ServiceAddress{Addr: affinityIP, Group: affinityGroup, AffinitySeconds: affinitySeconds}, endpointsAt(receiver().Address.V4, endpointsOfService))
	for i := range services {
		at := addrPlus(elsewhere, 10+i%200)
		b.add(tables.ServiceAddress{Addr: addrPlus(lowestIP, i), Group: uint32(lowestGroup + i)}, endpointsAt(at, i/200*endpointsOfService))
	}
	return p, b.err
}

// endpointsAt are the endpoints of a Service, from the n-th port on.
func endpointsAt(at netip.Addr, n int) (list []tables.Endpoint) {
	for i := range endpointsOfService {
		list = append(list, tables.Endpoint{
			Proto: packet.ProtoUDP, Addr: netip.AddrPortFrom(at, uint16(lowestEndpoint+n+i)), Local: at == receiver().Address.V4,
		})
	}
	return list
}

// addrPlus is the n-th IPv4 address after one.
func addrPlus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// serviceBuilder adds Services to a program. The tables of the example have
// other numbers than those made here, so entries go by way of their text.
type serviceBuilder struct {
	from *tables.Pipeline
	to   *flow.Program
	err  error
}

func (b *serviceBuilder) add(s tables.ServiceAddress, endpoints []tables.Endpoint) {
	s.Proto, s.Port = packet.ProtoUDP, servicePort
	for _, e := range endpoints {
		b.entries(b.from.Endpoint(e))
	}
	b.entries(b.from.ServiceAddress(s))
	b.group(b.from.EndpointGroup(tables.EndpointGroup{ID: s.Group, Affinity: s.AffinitySeconds > 0, Endpoints: endpoints}))
}

func (b *serviceBuilder) entries(list []*flow.Entry) {
	for _, e := range list {
		if b.err != nil {
			return
		}
		var there *flow.Entry
		if there, b.err = flow.ParseEntry(e.Text(flow.Format{Names: b.from.Names()}), b.to.Names); b.err == nil {
			b.to.Entries = append(b.to.Entries, there)
		}
	}
}

func (b *serviceBuilder) group(g *flow.Group) {
	if b.err != nil {
		return
	}
	var there *flow.Group
	if there, b.err = flow.ParseGroup(g.Text(b.from.Names()), b.to.Names); b.err == nil {
		b.to.Groups = append(b.to.Groups, there)
	}
}

// toService is a frame from the sender to a ClusterIP, by way of the gateway's
// MAC address, as a pod's routes have it.
func toService(ip netip.Addr) []byte {
	return udpFrame(sender(), routed(ip), knownSrc, servicePort, 64)
}

// routed is whoever has an address, behind the gateway's MAC address.
func routed(ip netip.Addr) (to lab.Pod) {
	to.MAC, to.Address.V4 = lab.TwoNodes().Nodes[0].GatewayMAC, ip
	return to
}

// The figures of Services.
const (
	knownService  = "known connection to a ClusterIP, pipeline alone"
	freshService  = "first packet to a ClusterIP, pipeline alone"
	freshAffinity = "first packet to a ClusterIP with affinity, pipeline alone"
	knownHairpin  = "known hairpin connection, pipeline alone"
	freshHairpin  = "first packet of a hairpin connection, pipeline alone"
)

// knownServiceCourse is one connection to the plain Service.
func knownServiceCourse() *course {
	c := &course{name: knownService, frame: toService(plainIP), of: 1}
	for _, e := range endpointsAt(receiver().Address.V4, 0) {
		c.answers = append(c.answers, udpFrame(receiver(), sender(), e.Addr.Port(), knownSrc, 64))
	}
	return c
}

func freshServiceCourse() *course {
	return &course{name: freshService, frame: toService(plainIP), change: changeSource}
}

func freshAffinityCourse() *course {
	return &course{name: freshAffinity, frame: toService(affinityIP), change: changeSource}
}

// hairpinFrame is a frame of the receiver to the plain Service, whose endpoints are
// all in the receiver itself: it is translated twice, in the zone of all
// connections and in that of SNAT, so that the answer comes back to the switch.
func hairpinFrame() []byte { return udpFrame(receiver(), routed(plainIP), knownSrc, servicePort, 64) }

// knownHairpinCourse is one such connection. Its endpoint answers the gateway's
// address.
func knownHairpinCourse() *course {
	c := &course{name: knownHairpin, frame: hairpinFrame(), of: 1, hairpin: true}
	for _, e := range endpointsAt(receiver().Address.V4, 0) {
		c.answers = append(c.answers, udpFrame(receiver(), routed(gateway), e.Addr.Port(), knownSrc, 64))
	}
	return c
}

func freshHairpinCourse() *course {
	return &course{name: freshHairpin, frame: hairpinFrame(), change: changeSource, hairpin: true}
}
