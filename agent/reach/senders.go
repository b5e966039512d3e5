package reach

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// senders is what a switch knows of senders: matches of entries at ports, MACs that NORMAL
// learned, tracked connections, and dropped packets. The first source that knows an answer
// counts.
type senders struct {
	p       *pipeline.Pipeline
	names   map[uint32]string // of the ports
	matched []sender
	answers map[netip.Addr]flow.Value // the MAC addresses by which entries answer ARP
	learned []telemetry.LearnedMAC
	dropped []api.DroppedPacket
	flows   map[uint8][]telemetry.FlowStats
}

// sender is what one entry matches at a port. addr may be invalid, and mac missing.
type sender struct {
	port   uint32
	addr   netip.Addr
	mac    flow.Value
	hasMAC bool
}

func newSenders(p *pipeline.Pipeline) *senders {
	s := &senders{p: p, names: map[uint32]string{}, answers: map[netip.Addr]flow.Value{}, learned: p.Switch.LearnedMACs(), flows: map[uint8][]telemetry.FlowStats{}}
	maps.Insert(s.names, p.Switch.Names().Ports())
	for _, port := range p.Switch.Ports() {
		s.names[port.No] = port.Name
	}
	for _, f := range p.Switch.Flows() {
		s.flows[f.Table] = append(s.flows[f.Table], f)
		s.noteSender(f.Match)
		s.noteAnswer(f.Entry)
	}
	s.dropped, _, _ = p.Drops.Since(0, func(d *api.DroppedPacket) bool { return !d.Leaving && len(d.Frame) >= packet.EthernetLen })
	return s
}

// exactly is the value of a field that a match compares with all its bits; otherwise not ok.
func exactly(m flow.Minimatch, id flow.FieldID) (v flow.Value, ok bool) {
	v, mask := m.Get(id)
	return v, mask == flow.Ones(flow.FieldByID(id).Bits)
}

// noteSender records the sender that a match expects at a port. ARP has its sender in the
// fields of the IPv4 source.
func (s *senders) noteSender(m flow.Minimatch) {
	port, atPort := exactly(m, flow.InPort)
	if !atPort {
		return
	}
	one := sender{port: uint32(port.Lo)}
	one.mac, one.hasMAC = exactly(m, flow.EthSrc)
	if !one.hasMAC {
		if etherType, _ := m.Get(flow.EthType); etherType.Lo == packet.EtherTypeARP {
			one.mac, one.hasMAC = exactly(m, flow.ArpSHA)
		}
	}
	for _, id := range []flow.FieldID{flow.IPSrc, flow.IPv6Src} {
		if v, is := exactly(m, id); is {
			one.addr = v.Addr(flow.FieldByID(id).Bits)
		}
	}
	if one.addr.IsValid() || one.hasMAC {
		s.matched = append(s.matched, one)
	}
}

// noteAnswer records the MAC address of an entry that answers ARP for an address.
func (s *senders) noteAnswer(e *flow.Entry) {
	target, is := exactly(e.Match, flow.ArpTPA)
	if etherType, _ := e.Match.Get(flow.EthType); !is || etherType.Lo != packet.EtherTypeARP {
		return
	}
	for _, a := range e.Actions {
		switch a := a.(type) {
		case flow.SetField:
			if a.Field == flow.ArpSHA {
				s.answers[target.Addr(32)] = a.Value
			}
		case flow.Load:
			if a.Dst == flow.FieldByID(flow.ArpSHA).Full() {
				s.answers[target.Addr(32)] = a.Value
			}
		}
	}
}

// name is a port's name, or its number.
func (s *senders) name(port uint32) string { return cmp.Or(s.names[port], fmt.Sprint(port)) }

// namesOf names ports; all of the switch for nil.
func (s *senders) namesOf(ports []uint32) string {
	if ports == nil {
		ports = slices.Sorted(maps.Keys(s.names))
	}
	var all []string
	for _, p := range ports {
		all = append(all, s.name(p))
	}
	return strings.Join(all, ", ")
}

// portNamed is a port of the switch by its name or number.
func (s *senders) portNamed(text string) (uint32, error) {
	for no, name := range s.names {
		if name == text {
			return no, nil
		}
	}
	if no, ok := flow.ReservedPort(text); ok && s.names[no] != "" {
		return no, nil
	}
	if no, err := strconv.ParseUint(text, 10, 32); err == nil && s.names[uint32(no)] != "" {
		return uint32(no), nil
	}
	return 0, fmt.Errorf("the switch has no port %q; there are %s", text, s.namesOf(nil))
}

// addressesAt are the addresses of one family that entries match at a port.
func (s *senders) addressesAt(port uint32, v6 bool) (all []netip.Addr) {
	for _, m := range s.matched {
		if m.port == port && m.addr.IsValid() && m.addr.Is6() == v6 {
			all = unique(all, m.addr)
		}
	}
	return all
}

// portsOf are the ports that an end may be at: by the first source that knows any.
func (s *senders) portsOf(e *end) (all []uint32) {
	for _, m := range s.matched {
		if m.addr == e.addr {
			all = unique(all, m.port)
		}
	}
	if all != nil {
		return all
	}
	for c := range s.p.Connections.Dump(conntrack.Filter{Address: netip.PrefixFrom(e.addr, e.addr.BitLen())}) {
		if c.Orig.Src == e.addr && c.InPort != 0 {
			all = unique(all, c.InPort)
		}
	}
	if all != nil {
		return all
	}
	if d := s.lastDropped(func(f *packetin.Flight) bool { return f.Src == e.addr }); d != nil {
		return []uint32{d.Port.No}
	}
	for _, l := range s.learned {
		if e.hasMAC && flow.ValueOfMAC(l.MAC[:]) == e.mac {
			all = unique(all, l.Port)
		}
	}
	return all
}

// macsOf are the MAC addresses that an end may have: by the first source that knows any.
func (s *senders) macsOf(e *end) (all []flow.Value) {
	for _, m := range s.matched {
		if m.addr == e.addr && m.hasMAC && (e.port == 0 || m.port == e.port) {
			all = unique(all, m.mac)
		}
	}
	if mac, ok := s.answers[e.addr]; ok && all == nil {
		all = append(all, mac)
	}
	if all != nil {
		return all
	}
	if d := s.lastDropped(func(f *packetin.Flight) bool { return f.Src == e.addr }); d != nil {
		mac := packet.Ethernet(d.Frame).Src()
		return []flow.Value{flow.ValueOfMAC(mac[:])}
	}
	for _, l := range s.learned {
		if l.Port == e.port && e.port != 0 {
			all = unique(all, flow.ValueOfMAC(l.MAC[:]))
		}
	}
	return all
}

// macTowards is the destination MAC of the last dropped packet from one address to another. It
// is a router's if the address is behind one.
func (s *senders) macTowards(src, dst netip.Addr) (flow.Value, bool) {
	d := s.lastDropped(func(f *packetin.Flight) bool { return f.Src == src && f.Dst == dst })
	if d == nil {
		return flow.Value{}, false
	}
	mac := packet.Ethernet(d.Frame).Dst()
	return flow.ValueOfMAC(mac[:]), true
}

// lastDropped is the last dropped IP packet that want takes; nil for none.
func (s *senders) lastDropped(want func(*packetin.Flight) bool) *api.DroppedPacket {
	for i := len(s.dropped) - 1; i >= 0; i-- {
		d := &s.dropped[i]
		if f, ok := packetin.FlightOf(pipeline.WholeFrame(d)); ok && want(&f) {
			return d
		}
	}
	return nil
}
