package workload

import (
	"net/netip"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

const (
	endpointsOfService = 3
	servicePort        = 53
	// lowestEndpoint is the port of a Service's first endpoint. The others have the ports behind it.
	lowestEndpoint = 20_000
	// plainGroup and affinityGroup are the groups of the measured Services.
	plainGroup, affinityGroup = 900, 901
	// lowestGroup is the group of the first other Service.
	lowestGroup     = 1000
	affinitySeconds = 10_800 // Kubernetes' default
)

// The addresses of the two measured Services, and the first address of the others.
var (
	plainIP    = netip.MustParseAddr("10.97.0.1")
	affinityIP = netip.MustParseAddr("10.97.0.2")
	lowestIP   = netip.MustParseAddr("10.98.0.0")
	gateway    = netip.MustParseAddr("10.10.0.1")
	elsewhere  = netip.MustParseAddr("10.10.1.0") // where the endpoints of the other Services are
)

// ServiceProgram is the program of a Node of examples/two-nodes with more Services: the two that are
// measured, and as many others.
func ServiceProgram(services int) (*flow.Program, error) {
	p, err := ExampleProgram("two-nodes/node-a")
	if err != nil {
		return nil, err
	}
	b := &serviceBuilder{to: p, from: tables.New(tables.Config{
		Features: tables.Features{Proxy: true, AntreaPolicy: true, Egress: true}, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")},
	})}
	b.addService(tables.ServiceAddress{Addr: plainIP, Group: plainGroup}, endpointsAt(testbed.Receiver().Address.V4, 0))
	b.addService(tables.ServiceAddress{Addr: affinityIP, Group: affinityGroup, AffinitySeconds: affinitySeconds}, endpointsAt(testbed.Receiver().Address.V4, endpointsOfService))
	for i := range services {
		at := addrPlus(elsewhere, 10+i%200)
		b.addService(tables.ServiceAddress{Addr: addrPlus(lowestIP, i), Group: uint32(lowestGroup + i)}, endpointsAt(at, i/200*endpointsOfService))
	}
	return p, b.err
}

// endpointsAt returns the endpoints of a Service at an address, from the n-th port on.
func endpointsAt(at netip.Addr, n int) (list []tables.Endpoint) {
	for i := range endpointsOfService {
		list = append(list, tables.Endpoint{
			Proto: packet.ProtoUDP, Addr: netip.AddrPortFrom(at, uint16(lowestEndpoint+n+i)), Local: at == testbed.Receiver().Address.V4,
		})
	}
	return list
}

// addrPlus returns the n-th IPv4 address after a.
func addrPlus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// serviceBuilder adds Services to a program. The example numbers its tables differently from the
// pipeline made here, so entries are copied as text.
type serviceBuilder struct {
	from *tables.Pipeline
	to   *flow.Program
	err  error
}

// addService adds the entries and the group of a Service.
func (b *serviceBuilder) addService(s tables.ServiceAddress, endpoints []tables.Endpoint) {
	s.Proto, s.Port = packet.ProtoUDP, servicePort
	for _, e := range endpoints {
		b.addEntries(b.from.Endpoint(e))
	}
	b.addEntries(b.from.ServiceAddress(s))
	b.addGroup(b.from.EndpointGroup(tables.EndpointGroup{ID: s.Group, Affinity: s.AffinitySeconds > 0, Endpoints: endpoints}))
}

// addEntries copies entries into the program.
func (b *serviceBuilder) addEntries(list []*flow.Entry) {
	for _, e := range list {
		if b.err != nil {
			return
		}
		var copied *flow.Entry
		if copied, b.err = parse.Entry(e.Text(flow.Format{Names: b.from.Names()}), b.to.Names); b.err == nil {
			b.to.Entries = append(b.to.Entries, copied)
		}
	}
}

// addGroup copies a group into the program.
func (b *serviceBuilder) addGroup(g *flow.Group) {
	if b.err != nil {
		return
	}
	var copied *flow.Group
	if copied, b.err = parse.Group(g.Text(b.from.Names()), b.to.Names); b.err == nil {
		b.to.Groups = append(b.to.Groups, copied)
	}
}
