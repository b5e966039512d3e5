package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// multicastFeature is the stories' Node with Multicast.
var multicastFeature = strings.Replace(shapingFeature, "EgressTrafficShaping", "Multicast", 1)

// noMulticastFrom drops packets from web-a to 239.1.0.0/16, and allows all others from client-a.
const noMulticastFrom = `
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: groups}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  egress:
    - {name: drop, action: Drop, to: [{ipBlock: {cidr: 239.1.0.0/16}}]}
    - {name: allow, action: Allow, to: [{ipBlock: {cidr: 239.2.0.0/16}}]}
`

// joined sets the members of a group: Pods of this Node by name, and Nodes by address.
func joined(group string, who ...string) MulticastGroup {
	g := MulticastGroup{Addr: netip.MustParseAddr(group)}
	for _, w := range who {
		if a, err := netip.ParseAddr(w); err == nil {
			g.Nodes = append(g.Nodes, a)
		} else {
			g.Pods = append(g.Pods, MulticastPod{cluster.Name{Namespace: "default", Name: w}, packet.IGMPReportV3})
		}
	}
	return g
}

func (w *wire) setMulticast(groups ...MulticastGroup) {
	w.t.Helper()
	if err := w.r.SetMulticast(groups); err != nil {
		w.t.Error(err)
	}
}

// TestMulticastByPackets: a packet goes to all members except its sender. It also goes to the gateway,
// unless it came from there or from another Node.
func TestMulticastByPackets(t *testing.T) {
	w := newWire(t, multicastFeature)
	before := w.dump()
	w.setMulticast(joined("239.1.1.1", "web-a", "client-a", "192.168.1.2"), joined("239.1.1.2", "client-a", "nobody"))
	const group, other, nobodys = "239.1.1.1:80", "239.1.1.2:80", "239.1.1.3:80"
	to := func(what string, ports ...string) (all []string) {
		for _, p := range ports {
			all = append(all, p+" "+what)
		}
		return all
	}
	for _, c := range []struct {
		from, src, dst string
		ports          []string
	}{
		{"web-a", "10.10.0.11:1", group, []string{"client-a", "gateway", "tunnel(192.168.1.2)"}},
		{"web-a", "10.10.0.11:1", other, []string{"client-a", "gateway"}},
		{"web-a", "10.10.0.11:1", nobodys, []string{"gateway"}},
		{"web-a", "10.10.0.12:1", group, nil}, // a forged source address
		{"gateway", "192.0.2.9:1", group, []string{"client-a", "web-a"}},
		{"gateway", "192.0.2.9:1", nobodys, nil},
		{"tunnel", "10.10.1.11:1", group, []string{"client-a", "web-a"}},
	} {
		what := "udp " + c.src + " > " + c.dst
		w.expect(c.from+" "+what, to(what, c.ports...)...)
	}
	counts := map[string]string{} // including web-a's own copy
	for _, p := range w.r.Pods(w.count) {
		counts[p.Object.Name] = fmt.Sprint(p.MulticastSent, p.MulticastReceived, p.Groups)
	}
	if counts["web-a"] != "3 3 [239.1.1.1]" || counts["client-a"] != "0 4 [239.1.1.1 239.1.1.2]" {
		t.Errorf("packets and groups of Pods: %v", counts)
	}
	w.setMulticast()
	w.expect("web-a udp 10.10.0.11:1 > "+group, "gateway udp 10.10.0.11:1 > "+group)
	if after := w.dump(); !slices.Equal(before, after) {
		t.Errorf("before the first member %q\nafter the last %q", before, after)
	}
}

// count returns the counter of an entry in the switch.
func (w *wire) count(e *flow.Entry) (packets, bytes uint64) {
	for _, f := range w.sw.FlowsIn(e.Table) {
		if f.Identity() == e.Identity() {
			return f.Packets, f.Bytes
		}
	}
	return 0, 0
}

// igmpFrom is a membership report, made like frame's packets.
func (w *wire) igmpFrom(port, src, dst string) []byte {
	b := w.frame(port, "udp "+src+":0 > "+dst+":0")[:14+20]
	b[14+9], b[14+3] = 2, 28 // protocol and length
	b[14+10], b[14+11] = 0, 0
	return append(b, 0x16, 0, 0x08, 0xfb, 239, 1, 1, 1)
}

// TestReportsByPackets: reports of Pods and Nodes go to the agent only. The agent's messages go to all
// Pods, or to all Nodes.
func TestReportsByPackets(t *testing.T) {
	w := newWire(t, multicastFeature)
	w.setMulticast(joined("239.1.1.1", "web-a", "client-a"))
	for port, src := range map[string]string{"web-a": "10.10.0.11", "tunnel": "10.10.1.1"} {
		w.inject(port, w.igmpFrom(port, src, "239.1.1.1"))
		w.sw.Poll()
		ins := w.sw.packetIns
		if len(ins) != 1 || !slices.Equal(ins[0].UserData, []byte{tables.PacketInIGMP}) {
			t.Errorf("%s: packet-ins %v", port, ins)
		}
		w.sw.packetIns = nil
		if left := w.leftBy(); len(left) != 0 {
			t.Errorf("%s: a report left by %v", port, left)
		}
	}
	first := w.r.view.pipeline.First()
	for _, c := range []struct {
		action flow.Action
		dst    string
		want   []string
	}{
		{flow.GroupAction{ID: tables.GroupMulticastPods}, "224.0.0.1", []string{"client-a", "web-a"}},
		{flow.Resubmit{InPort: flow.PortInPort, Table: first}, "224.0.0.22", []string{"tunnel"}},
	} {
		if err := w.sw.PacketOut(flow.PortController, []flow.Action{c.action}, w.igmpFrom("gateway", "10.10.0.1", c.dst)); err != nil {
			t.Fatal(err)
		}
		if got := w.leftBy(); !slices.Equal(got, c.want) {
			t.Errorf("to %s: left by %v, want %v", c.dst, got, c.want)
		}
	}
}

// leftBy returns the ports by which frames left, in order.
func (w *wire) leftBy() (all []string) {
	one := make([]*packet.Frame, 1)
	for name, p := range w.ports {
		for p.Collect(one) == 1 {
			all = append(all, name)
			packet.Release(one)
		}
	}
	slices.Sort(all)
	return all
}

// TestMulticastPoliciesByPackets: egress rules about groups drop, allow and count. Rules with other peers,
// and isolation, do not affect groups.
func TestMulticastPoliciesByPackets(t *testing.T) {
	w := newWire(t, multicastFeature+noMulticastFrom+`
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: isolated, namespace: default}
spec: {podSelector: {}, policyTypes: [Egress, Ingress]}
`)
	w.setMulticast(joined("239.1.1.1", "client-a"), joined("239.2.1.1", "client-a"))
	w.expect("web-a udp 10.10.0.11:1 > 239.1.1.1:80")
	w.expect("web-a udp 10.10.0.11:1 > 239.2.1.1:80", "client-a udp 10.10.0.11:1 > 239.2.1.1:80", "gateway udp 10.10.0.11:1 > 239.2.1.1:80")
	w.expect("client-a udp 10.10.0.12:1 > 239.1.1.1:80", "gateway udp 10.10.0.12:1 > 239.1.1.1:80")
	for _, p := range w.r.Policies(w.count) {
		for _, r := range p.Rules {
			if p.Object.Name == "groups" && r.Packets != 1 {
				t.Errorf("rule %s has counted %d packets, want 1", r.Name, r.Packets)
			}
		}
	}
	for edit, want := range map[string]string{
		"action: Drop":   "action: Reject",
		"39.1.0.0/16}}]": "39.1.0.0/16}}, {podSelector: {}}]",
		"egress:\n":      "ingress:\n",
	} {
		text := strings.Replace(noMulticastFrom, edit, want, 1)
		if edit == "egress:\n" {
			text = strings.ReplaceAll(text, " to: ", " from: ")
		}
		w.put(text)
		if s, _ := w.r.Status(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "groups"}); !strings.Contains(s.Reason, "a rule of multicast groups") {
			t.Errorf("%s: %s: %s", want, s.State, s.Reason)
		}
	}
}

// igmpRules are rules about reports from web-a, and about queries to it.
const igmpRules = `
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: groups}
spec:
  priority: 5
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: no queries, action: Drop, protocols: [{igmp: {igmpType: 0x11, groupAddress: 224.0.0.1}}]}
  egress:
    - {name: allow, action: Allow, protocols: [{igmp: {groupAddress: 239.1.1.2}}]}
    - {name: old, action: Allow, protocols: [{igmp: {igmpType: 0x16}}]}
    - {name: drop, action: Drop, protocols: [{igmp: {}}]}
`

// TestIGMPPoliciesByPackets: as soon as a policy keeps a Pod from a group, the Pod gets none of its packets.
// Without the policy, it joins again. The type of the report counts. Queries reach only Pods that may get
// them. Each decision is counted.
func TestIGMPPoliciesByPackets(t *testing.T) {
	w := newWire(t, multicastFeature)
	w.setMulticast(joined("239.1.1.1", "web-a", "client-a"), joined("239.1.1.2", "web-a"), joined("239.1.1.3", "web-a"))
	to := func(group string, ports ...string) {
		t.Helper()
		what := "udp 192.0.2.9:1 > " + group + ":80"
		for i, p := range ports {
			ports[i] = p + " " + what
		}
		w.expect("gateway "+what, ports...)
	}
	query := func(ports ...string) {
		t.Helper()
		action := flow.GroupAction{ID: tables.GroupMulticastPods}
		if err := w.sw.PacketOut(flow.PortController, []flow.Action{action}, w.igmpFrom("gateway", "10.10.0.1", "224.0.0.1")); err != nil {
			t.Fatal(err)
		}
		if got := w.leftBy(); !slices.Equal(got, ports) {
			t.Errorf("a query left by %v, want %v", got, ports)
		}
	}
	groups := func(want string) {
		t.Helper()
		if got := fmt.Sprint(w.r.JoinedGroups()); got != want {
			t.Errorf("joined %s, want %s", got, want)
		}
	}
	groups("[239.1.1.1 239.1.1.2 239.1.1.3]")
	to("239.1.1.1", "client-a", "web-a")
	query("client-a", "web-a")

	w.put(igmpRules)
	groups("[239.1.1.1 239.1.1.2]")
	to("239.1.1.1", "client-a")
	to("239.1.1.2", "web-a")
	to("239.1.1.3")
	query("client-a")
	for _, p := range w.r.Pods(w.count) {
		if p.Object.Name == "web-a" && fmt.Sprint(p.Groups) != "[239.1.1.2]" {
			t.Errorf("web-a has joined %v", p.Groups)
		}
	}
	web := MulticastPod{cluster.Name{Namespace: "default", Name: "web-a"}, packet.IGMPReportV3}
	for _, group := range []string{"239.1.1.1", "239.1.1.1", "239.1.1.2"} {
		w.r.CountReport(netip.MustParseAddr(group), web, 54)
	}
	counts := map[string]uint64{}
	for _, p := range w.r.Policies(w.count) {
		for _, r := range p.Rules {
			counts[r.Name] = r.Packets
		}
	}
	if want := "map[allow:1 drop:2 no queries:1 old:0]"; fmt.Sprint(counts) != want {
		t.Errorf("counted %v, want %s", counts, want)
	}
	old := joined("239.1.1.3", "web-a")
	old.Pods[0].Report = packet.IGMPReportV2
	w.setMulticast(old)
	to("239.1.1.3", "web-a")
	w.put(strings.Replace(igmpRules, "action: Allow, protocols: [{igmp: {igmpType: 0x16}}]", "action: Drop, protocols: [{igmp: {igmpType: 0x16}}]", 1))
	to("239.1.1.3")
	w.change(nil, []cluster.Key{{Kind: cluster.KindClusterNetworkPolicy, Name: "groups"}})
	to("239.1.1.3", "web-a")

	for edit, want := range map[string]string{
		"igmpType: 0x16":                        "igmpType: 0x11",
		"igmpType: 0x11":                        "igmpType: 0x12",
		"224.0.0.1":                             "224.0.0.2",
		"action: Allow":                         "action: Reject",
		"{igmp: {}}]":                           "{igmp: {}}, {icmp: {}}]",
		"[{igmp: {}}]":                          "[{igmp: {}}], to: [{podSelector: {}}]",
		"action: Drop, protocols: [{igmp: {}}]": "action: Drop, enableLogging: true, protocols: [{igmp: {}}]",
	} {
		w.put(strings.Replace(igmpRules, edit, want, 1))
		if s, _ := w.r.Status(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "groups"}); !strings.Contains(s.Reason, "rule of IGMP") {
			t.Errorf("%s: %s: %s", want, s.State, s.Reason)
		}
	}
	w = newWire(t, strings.Replace(multicastFeature, "Multicast: true", "Multicast: false", 1)+igmpRules)
	if s, _ := w.r.Status(cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "groups"}); !strings.Contains(s.Reason, "igmpType needs the feature Multicast") {
		t.Errorf("without Multicast: %s: %s", s.State, s.Reason)
	}
}

// TestMulticastRestarts: the next process keeps the groups, their members and their numbers.
func TestMulticastRestarts(t *testing.T) {
	x := newTelling(t, readManifest(t, "testdata/stories/node.yaml"), nil)
	x.change(decodeAll(t, multicastFeature), nil)
	first, second := joined("239.1.1.9", "web-a"), joined("239.1.1.1", "client-a", "192.168.1.2")
	for _, all := range [][]MulticastGroup{{first}, {second, first}} {
		if err := x.r.SetMulticast(all); err != nil {
			t.Fatal(err)
		}
	}
	was := x.dump()
	to := x.restart()
	x.change(nil, nil)
	if diff := diffDumps(was, x.dump()); diff != "" || to.count > 0 {
		t.Errorf("%d changes:\n%s", to.count, diff)
	}
	if groups, joined := fmt.Sprint(x.r.MulticastGroups()), fmt.Sprint(x.r.JoinedGroups()); groups != fmt.Sprint([]MulticastGroup{second, first}) || joined != "[239.1.1.1 239.1.1.9]" {
		t.Errorf("groups %s, joined %s", groups, joined)
	}
}
