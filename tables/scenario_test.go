package tables

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// The scenario of the golden dump: a Node of a cluster with another Node, three
// Pods, seven Services, three policies, two Egresses and two TrafficControls.
// Ids are those that the dump happens to have.
//
// In IPv6 the same objects have the IPv4 address as the low bits of one in
// fd00::/96, and their groups have ids from 100.

var (
	gateway = Port{Name: "antrea-gw0", No: 2, MAC: mac("ba:5e:d1:55:aa:c0")}
	tunnel  = Port{Name: "antrea-tun0", No: 1}
	client  = Port{Name: "client-6-3353ef", No: 36, MAC: mac("5e:b5:e3:a6:90:b7")}
	web     = Port{Name: "web-7975-274540", No: 37, MAC: mac("fa:b7:53:74:21:a6")}
	db      = Port{Name: "db-755c6-5080e3", No: 38, MAC: mac("36:48:21:a2:9d:b4")}
	tap0    = Port{Name: "antrea-tc-tap0", No: 34}
	tap1    = Port{Name: "antrea-tc-tap1", No: 35}
	tap2    = Port{Name: "antrea-tc-tap2", No: 39}
	l7tap0  = Port{Name: "antrea-l7-tap0", No: 32}
	l7tap1  = Port{Name: "antrea-l7-tap1", No: 33}
)

var allPorts = []Port{gateway, tunnel, client, web, db, tap0, tap1, tap2, l7tap0, l7tap1}

// families of a scenario.
type families []Family

// addr is an address in a family.
func (f Family) addr(s string) netip.Addr {
	a := netip.MustParseAddr(s)
	if f == IPv6 {
		b := a.As4()
		return netip.AddrFrom16([16]byte{0: 0xfd, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
	}
	return a
}

func (f Family) prefix(s string) netip.Prefix {
	p := netip.MustParsePrefix(s)
	return netip.PrefixFrom(f.addr(p.Addr().String()), p.Bits()+f.addr("0.0.0.0").BitLen()-32)
}

// ips and prefixes are an address or prefix in all families.
func (list families) ips(s string) (all []netip.Addr) {
	for _, f := range list {
		all = append(all, f.addr(s))
	}
	return all
}

func (list families) prefixes(s string) (all []netip.Prefix) {
	for _, f := range list {
		all = append(all, f.prefix(s))
	}
	return all
}

func (list families) config() Config {
	return Config{
		Features: Features{
			Proxy: true, ProxyAll: true, AntreaPolicy: true, Egress: true, TrafficControl: true, L7Policy: true,
		},
		Gateway:           gateway,
		GatewayIPs:        list.ips("10.10.0.1"),
		Tunnel:            tunnel,
		PodCIDRs:          list.prefixes("10.10.0.0/24"),
		NodeIPs:           list.ips("192.168.77.102"),
		ServiceCIDRs:      list.prefixes("10.96.0.0/12"),
		NodePortAddresses: list.ips("192.168.77.102"),
		L7Target:          l7tap0,
		L7Return:          l7tap1,
		ControllerID:      62373,
		PacketInRate:      500,
		CookieRound:       2,
	}
}

func goldenConfig() Config { return families{IPv4}.config() }

// program is everything that the scenario's objects make.
func (list families) program(c Config) *flow.Program {
	p := New(c)
	prog := &flow.Program{Names: p.Names(), First: p.First(), Meters: p.Meters(), Groups: p.StaticGroups()}
	for _, port := range allPorts {
		prog.Names.SetPort(port.No, port.Name)
	}
	prog.Entries = append(p.Static(), p.Peer(Peer{
		NodeIPs: list.ips("192.168.77.103"), PodCIDRs: list.prefixes("10.10.1.0/24"), GatewayIPs: list.ips("10.10.1.1"),
	})...)
	for _, pod := range []Pod{
		{Port: client, IPs: list.ips("10.10.0.26")}, {Port: web, IPs: list.ips("10.10.0.24")}, {Port: db, IPs: list.ips("10.10.0.25")},
	} {
		prog.Entries = append(prog.Entries, p.Pod(pod)...)
	}
	for _, f := range list {
		addServices(p, prog, f)
		addEgresses(p, prog, f)
	}
	list.addPolicies(p, prog)
	addTraffic(p, prog)
	addMulticast(p, prog)
	return prog
}

func goldenProgram(c Config) *flow.Program { return families{IPv4}.program(c) }

func addServices(p *Pipeline, prog *flow.Program, f Family) {
	base := uint32(0)
	if f == IPv6 {
		base = 100
	}
	both := []Endpoint{
		{Proto: 6, Addr: netip.AddrPortFrom(f.addr("10.10.0.24"), 80), Local: true},
		{Proto: 6, Addr: netip.AddrPortFrom(f.addr("10.10.1.6"), 80)},
	}
	for _, e := range both {
		prog.Entries = append(prog.Entries, p.Endpoint(e)...)
	}
	for _, g := range []EndpointGroup{
		{ID: 9}, {ID: 10, Endpoints: both}, {ID: 11, Affinity: true, Endpoints: both}, {ID: 12, Endpoints: both},
		{ID: 14, Endpoints: both}, {ID: 16, Endpoints: both}, {ID: 17, Endpoints: both}, {ID: 18, Endpoints: both[:1]},
	} {
		g.ID += base
		if group := p.EndpointGroup(g); group != nil {
			prog.Groups = append(prog.Groups, group)
		}
	}
	for _, s := range []ServiceAddress{
		{Addr: f.addr("10.101.255.29"), Port: 80, Group: 9},
		{Addr: f.addr("10.105.31.235"), Port: 80, Group: 10},
		{Addr: f.addr("10.96.76.15"), Port: 80, Group: 11, AffinitySeconds: 300},
		{Family: f, Port: 30004, Group: 12, External: true},
		{Addr: f.addr("192.168.77.150"), Port: 80, Group: 14, External: true},
		{Addr: f.addr("192.168.77.200"), Port: 80, Group: 16, External: true},
		{Addr: f.addr("192.168.77.151"), Port: 80, Group: 18, ClusterGroup: 17, External: true},
	} {
		s.Proto = 6
		s.Group += base
		if s.ClusterGroup != 0 {
			s.ClusterGroup += base
		}
		prog.Entries = append(prog.Entries, p.ServiceAddress(s)...)
	}
}

func (list families) addPolicies(p *Pipeline, prog *flow.Program) {
	at := func(ip string) (all []Address) {
		for _, a := range list.ips(ip) {
			all = append(all, Address{Prefix: host(a)})
		}
		return all
	}
	port := func(n uint16) []L4Match { return []L4Match{{Proto: 6, Port: n}} }
	onWeb := []Address{{Port: web.No}}
	for _, r := range []Rule{
		{ID: 2, Direction: Egress, From: at("10.10.0.24"), To: at("10.10.0.25"), Services: port(3306)},
		{ID: 3, Direction: Ingress, From: at("10.10.0.26"), To: onWeb, Services: port(80)},
		{ID: 7, Direction: Egress, Kind: AntreaPolicy, Priority: 14500,
			From: at("10.10.0.24"), To: at("10.10.0.25"), Services: port(3306)},
		{ID: 5, Direction: Egress, Kind: AntreaPolicy, Priority: 14499, Action: Drop, From: at("10.10.0.24"), AnyTo: true},
		{ID: 6, Direction: Ingress, Kind: AntreaPolicy, Priority: 14500,
			From: at("10.10.0.26"), To: onWeb, Services: port(80)},
		{ID: 4, Direction: Ingress, Kind: AntreaPolicy, Priority: 14499, Action: Drop, AnyFrom: true, To: onWeb},
		{ID: 14, Direction: Ingress, Kind: AntreaPolicy, Priority: 14600,
			From: at("10.10.0.26"), To: onWeb, Services: port(8080), L7VLAN: 2},
	} {
		prog.Entries = append(prog.Entries, p.Rule(r)...)
	}
	isolated := Pod{Port: web, IPs: list.ips("10.10.0.24")}
	prog.Entries = append(prog.Entries, p.DefaultDrop(Egress, isolated)...)
	prog.Entries = append(prog.Entries, p.DefaultDrop(Ingress, isolated)...)
}

func addEgresses(p *Pipeline, prog *flow.Program, f Family) {
	here := EgressIP{Addr: f.addr("192.168.77.112"), Mark: 1}
	there := EgressIP{Addr: f.addr("192.168.77.113")}
	prog.Entries = append(prog.Entries, concat(
		p.EgressAddress(here), p.PodEgress(web, here), p.EgressAddress(there), p.PodEgress(client, there),
	)...)
	if f == IPv4 {
		entries, meters := p.EgressLimit(EgressLimit{Mark: 1, Rate: 800_000, Burst: 2_000_000})
		prog.Entries, prog.Meters = append(prog.Entries, entries...), append(prog.Meters, meters...)
	}
}

func addTraffic(p *Pipeline, prog *flow.Program) {
	redirect := TrafficControl{
		Redirect: true, Target: tap0, Return: &tap1, Ingress: true, Egress: true, PodPorts: []uint32{web.No},
	}
	mirror := TrafficControl{Target: tap2, Ingress: true, Egress: true, PodPorts: []uint32{db.No}}
	prog.Entries = append(prog.Entries, concat(
		p.TrafficControl(redirect), p.ReturnPort(tap1), p.TrafficControl(mirror),
	)...)
}

// addMulticast adds members of a group here and on the other Node, and rules of groups.
func addMulticast(p *Pipeline, prog *flow.Program) {
	if !hasMulticast(p) {
		return
	}
	node := IPv4.addr("192.168.77.103")
	entry, group := p.MulticastGroup(MulticastGroup{
		ID: FirstMulticastGroup, Addr: IPv4.addr("239.1.2.3"), Ports: []uint32{web.No, db.No}, Nodes: []netip.Addr{node},
	})
	entries, groups := p.MulticastNeighbours([]uint32{client.No, web.No, db.No}, []netip.Addr{node})
	prog.Entries = append(append(prog.Entries, entry), entries...)
	prog.Groups = append(append(prog.Groups, group), groups...)
	for id, action := range map[uint32]Action{20: Allow, 21: Drop} {
		prog.Entries = append(prog.Entries, p.Rule(Rule{
			ID: id, Direction: Egress, Kind: MulticastPolicy, Priority: 14000 + uint16(id), Action: action,
			From: []Address{{Prefix: host(IPv4.addr("10.10.0.24"))}}, To: []Address{{Prefix: IPv4.prefix("239.0.0.0/8")}},
		})...)
	}
}

func mac(s string) (m [6]byte) {
	for i, part := range strings.Split(s, ":") {
		m[i] = hexByte(part)
	}
	return m
}

func hexByte(s string) (b byte) {
	for _, c := range s {
		b = b<<4 | byte(strings.IndexRune("0123456789abcdef", c))
	}
	return b
}

// lines are entries as the dumps write them: without cookies, and without the
// leading blank.
func lines(t *testing.T, entries []*flow.Entry, n *flow.Names) (all []string) {
	t.Helper()
	seen := map[flow.Identity]string{}
	for _, e := range entries {
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", e.Text(flow.Format{Names: n}), err)
		}
		bare := *e
		bare.Cookie = 0
		text := strings.TrimSpace(bare.Text(flow.Format{Names: n}))
		if was, ok := seen[e.Identity()]; ok && was != text {
			t.Errorf("two entries are the same and do different things:\n%s\n%s", was, text)
		} else if !ok {
			all = append(all, text)
		}
		seen[e.Identity()] = text
	}
	return all
}
