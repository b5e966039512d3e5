package multicast

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// node is a Node with Pods a, at port 11, and b, at port 12. It keeps the groups, the messages
// and the routes of the querier.
type node struct {
	t      *testing.T
	q      *Querier
	now    time.Time
	gone   string // a Pod that is not there any more
	groups []string
	joined []netip.Addr
	forbid netip.Addr // a group
	counts []string   // of reports
	routes []netip.Addr
	lacks  error // what routes answer
	sent   []string
	left   []control.MulticastGroup // by the agent before
}

func newNode(t *testing.T, left ...control.MulticastGroup) *node {
	n := &node{t: t, now: time.Unix(1e9, 0), left: left}
	n.q = New(n, n, (*nodeRoutes)(n), func() time.Time { return n.now }, slog.New(slog.DiscardHandler))
	return n
}

func (n *node) MulticastNode() (netip.Addr, [6]byte, bool) {
	return netip.MustParseAddr("10.10.0.1"), [6]byte{0xa, 0, 0, 0, 0, 2}, true
}

func (n *node) PodAt(port uint32) (cluster.Name, bool) {
	name, ok := map[uint32]string{11: "a", 12: "b"}[port]
	return cluster.Name{Namespace: "default", Name: name}, ok
}

func (n *node) HasPod(name cluster.Name) bool { return name.Name != n.gone }

func (n *node) SetMulticast(all []control.MulticastGroup) error {
	n.groups, n.joined = nil, nil
	for _, g := range all {
		var who []string
		for _, p := range g.Pods {
			who = append(who, p.Name.Name)
		}
		if len(who) > 0 {
			n.joined = append(n.joined, g.Addr)
		}
		n.groups = append(n.groups, fmt.Sprint(g.Addr, who, g.Nodes))
	}
	return nil
}

func (n *node) JoinedGroups() []netip.Addr {
	return slices.DeleteFunc(slices.Clone(n.joined), func(a netip.Addr) bool { return a == n.forbid })
}

func (n *node) MulticastGroups() []control.MulticastGroup { return n.left }

func (n *node) CountReport(group netip.Addr, m control.MulticastPod, bytes int) {
	n.counts = append(n.counts, fmt.Sprintf("%s %s %#x %d", m.Name.Name, group, m.Report, bytes))
}

// nodeRoutes are the routes of a node.
type nodeRoutes node

func (r *nodeRoutes) Set(groups []netip.Addr) error {
	if r.lacks == nil {
		r.routes = groups
	}
	return r.lacks
}

func (r *nodeRoutes) Remove() error { r.routes = nil; return r.lacks }
func (r *nodeRoutes) Close()        {}

func (n *node) Names() *flow.Names {
	names := flow.NewNames()
	names.SetTable(0, tables.TableNames()[0])
	return names
}

func (n *node) PacketOut(inPort uint32, actions []flow.Action, b []byte) error {
	l := packet.ParseLayers(b)
	m, h := packet.IGMP(b[l.L4:l.End]), packet.IPv4(b[l.L3:])
	if inPort != flow.PortController || !m.Valid() || packet.Sum(h[:h.HeaderLen()], 0) != 0xffff || b[0] != 1 || b[5] != h.DstBytes()[3] {
		n.t.Errorf("port %d: % x", inPort, b)
	}
	var groups []string
	for x := range m.Memberships() {
		groups = append(groups, fmt.Sprintf("%s joins=%t", x.Group, x.Joins))
	}
	n.sent = append(n.sent, fmt.Sprintf("%#x %s %s %v", m.Type(), h.Dst(), flow.ActionsText(actions, flow.Format{}), groups))
	return nil
}

// hear takes a message from a Pod's port, or from another Node.
func (n *node) hear(port uint32, from string, m packet.IGMP) {
	pi := &telemetry.PacketIn{
		InPort: port, UserData: []byte{tables.PacketInIGMP},
		Frame: frame(netip.MustParseAddr("10.10.0.11"), [6]byte{2}, allRouters, m),
	}
	if from != "" {
		a, f := netip.MustParseAddr(from), flow.TunSrc
		if a.Is6() {
			f = flow.TunIPv6Src
		}
		flow.FieldByID(f).Put(&pi.Key, flow.ValueOfAddr(a), flow.Ones(a.BitLen()))
	}
	n.q.Receive(pi)
	select {
	case <-n.q.changed:
		n.q.apply()
	default:
	}
}

func (n *node) expect(groups ...string) {
	n.t.Helper()
	if !slices.Equal(n.groups, groups) {
		n.t.Errorf("groups %q, want %q", n.groups, groups)
	}
}

// later lets seconds pass, with a beat in each.
func (n *node) later(seconds int) {
	for range seconds {
		n.now = n.now.Add(time.Second)
		n.q.beat()
	}
}

func addrs(all ...string) (list []netip.Addr) {
	for _, a := range all {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}

// TestMembers: Pods join and leave, are forgotten if they miss three queries, or go.
func TestMembers(t *testing.T) {
	n := newNode(t)
	join := func(groups ...string) packet.IGMP { return packet.NewIGMPReport(addrs(groups...), nil) }
	n.hear(11, "", join("239.1.1.1", "239.1.1.2"))
	n.hear(12, "", packet.IGMP{})
	n.expect("239.1.1.1 [a] []", "239.1.1.2 [a] []")
	n.hear(12, "", join("239.1.1.1", "224.0.0.1", "10.1.1.1"))
	n.hear(13, "", join("239.1.1.1"))
	n.expect("239.1.1.1 [a b] []", "239.1.1.2 [a] []")
	n.hear(11, "", packet.NewIGMPReport(nil, addrs("239.1.1.2")))
	n.expect("239.1.1.1 [a b] []")
	n.later(300)
	n.hear(12, "", join("239.1.1.1"))
	n.later(100)
	n.expect("239.1.1.1 [b] []")
	n.gone = "b"
	n.later(1)
	n.expect()
}

// TestMembersOfBefore: members that the agent before has left stay until they miss three queries of this
// one, and the routes stay as they are.
func TestMembersOfBefore(t *testing.T) {
	a := control.MulticastPod{Name: cluster.Name{Namespace: "default", Name: "a"}, Report: 0x22}
	n := newNode(t, control.MulticastGroup{Addr: addrs("239.1.1.1")[0], Pods: []control.MulticastPod{a}, Nodes: addrs("192.168.1.2")})
	n.joined = addrs("239.1.1.1")
	n.hear(12, "", packet.NewIGMPReport(addrs("239.1.1.1", "239.1.1.2"), nil))
	n.expect("239.1.1.1 [a b] [192.168.1.2]", "239.1.1.2 [b] []")
	n.later(1)
	if got := fmt.Sprint(n.routes); got != "[239.1.1.1 239.1.1.2]" {
		t.Errorf("routes %s", got)
	}
	n.later(300)
	n.hear(12, "", packet.NewIGMPReport(addrs("239.1.1.1", "239.1.1.2"), nil))
	n.later(100)
	n.expect("239.1.1.1 [b] []", "239.1.1.2 [b] []")
}

// TestQueries: queries go to Pods at once, and then every 125 seconds. Reports go to other Nodes
// after each change, and every 30 seconds.
func TestQueries(t *testing.T) {
	n := newNode(t)
	n.later(251)
	query := fmt.Sprintf("0x11 224.0.0.1 group:%d []", tables.GroupMulticastPods)
	if want := []string{query, query, query}; !slices.Equal(n.sent, want) {
		t.Errorf("sent %q, want %q", n.sent, want)
	}
	n.sent = nil
	n.hear(11, "", packet.NewIGMPReport(addrs("239.1.1.1"), nil))
	n.later(31)
	n.hear(11, "", packet.NewIGMPReport(nil, addrs("239.1.1.1")))
	joins, leaves := "0x22 224.0.0.22 resubmit(,0) [239.1.1.1 joins=true]", "0x22 224.0.0.22 resubmit(,0) [239.1.1.1 joins=false]"
	if want := []string{joins, joins, leaves}; !slices.Equal(n.sent, want) {
		t.Errorf("sent %q, want %q", n.sent, want)
	}
}

// TestForbidden: routes and other Nodes follow what policies let join, within a second. Routes that
// could not be made are tried again, and each report is counted.
func TestForbidden(t *testing.T) {
	n := newNode(t)
	n.lacks = errors.New("another program has them")
	n.hear(11, "", packet.NewIGMPReport(addrs("239.1.1.1", "239.1.1.2"), addrs("239.1.1.3")))
	if n.routes != nil {
		t.Errorf("routes %v", n.routes)
	}
	n.lacks = nil
	for _, c := range []struct {
		forbid, want string
	}{{"", "[239.1.1.1 239.1.1.2]"}, {"239.1.1.2", "[239.1.1.1]"}, {"", "[239.1.1.1 239.1.1.2]"}} {
		n.forbid, _ = netip.ParseAddr(c.forbid)
		n.later(1)
		if got := fmt.Sprint(n.routes); got != c.want {
			t.Errorf("without %q: routes %s, want %s", c.forbid, got, c.want)
		}
	}
	n.expect("239.1.1.1 [a] []", "239.1.1.2 [a] []")
	if last := n.sent[len(n.sent)-2]; !strings.Contains(last, "[239.1.1.1 joins=true]") && !strings.Contains(last, "239.1.1.2 joins=false") {
		t.Errorf("sent %q", n.sent)
	}
	if want := []string{"a 239.1.1.1 0x22 70", "a 239.1.1.2 0x22 70"}; !slices.Equal(n.counts, want) {
		t.Errorf("counted %q, want %q", n.counts, want)
	}
}

// TestNodes: other Nodes are members until they miss three reports.
func TestNodes(t *testing.T) {
	n := newNode(t)
	for _, node := range []string{"192.168.1.2", "fd00::2"} {
		n.hear(1, node, packet.NewIGMPReport(addrs("239.1.1.1"), nil))
	}
	n.expect("239.1.1.1 [] [192.168.1.2 fd00::2]")
	n.hear(1, "fd00::2", packet.NewIGMPReport(nil, addrs("239.1.1.1")))
	n.later(90)
	n.expect("239.1.1.1 [] [192.168.1.2]")
	n.later(1)
	n.expect()
}

// TestBounds: a Pod joins no more than maxPerPod groups, a Node has no more than its bound.
func TestBounds(t *testing.T) {
	n := newNode(t)
	for i := range 100 {
		n.hear(11, "", packet.NewIGMPReport([]netip.Addr{netip.AddrFrom4([4]byte{239, 2, 2, byte(i)})}, nil))
	}
	if len(n.groups) != maxPerPod || strings.Contains(fmt.Sprint(n.groups), "239.2.2.99") {
		t.Errorf("%d groups", len(n.groups))
	}
	for i := range 8 {
		var all []netip.Addr
		for j := range 150 {
			all = append(all, netip.AddrFrom4([4]byte{239, 3, byte(i), byte(j)}))
		}
		n.hear(1, "192.168.1.2", packet.NewIGMPReport(all, nil))
	}
	if len(n.groups) != control.MaxMulticastGroups {
		t.Errorf("%d groups of two members, want %d", len(n.groups), control.MaxMulticastGroups)
	}
}
