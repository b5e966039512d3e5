package vppl3

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// acl-plugin-out-ip4-fa checks packets to a pod by one combined list: the client must be allowed
// to send and the server to receive.
//
// A reply passes by the session that the pod's own packet has made. So policies apply in the
// direction of the request only, and a pod that accepts no requests still gets replies.
//
// Packets from a pod to itself by a Service always pass.
//
// Every packet of the request's direction is checked. So a removed rule takes effect for existing
// sessions too.
//
// Reads:  ct_state of zone 1, in_port, TxSwIfIndex, the source, the protocol, the destination
// port.
// Writes: nothing.
// Next:   nothing. Table-miss: drop.

// Priorities: the more specific source first.
const (
	priorityItself     = 220 // a pod's own packet, back to it
	prioritySession    = 210 // a reply
	priorityClient     = 200 // a client with rules of its own
	priorityClientDrop = 195 // … whose rules do not allow this server
	priorityServer     = 190 // any client
)

func aclOut(n *layout.Node) (all []layout.Entry) {
	for _, p := range n.Pods {
		to := txField.Is(uint64(p.Port.No))
		if isBackend(n, p.IP()) {
			all = append(all, entry("V-15", p.Port.Name+" to itself", tableACLOut, priorityItself, layout.Match(layout.IPv4, to, layout.InPort(p.Port)), flow.OutputInPort{}))
		}
		if !isReferenced(n, p.IP()) {
			all = append(all, entry("V-15", "no policy speaks of "+p.Port.Name, tableACLOut, priorityServer, layout.Match(layout.IPv4, to), outputTx()))
			continue
		}
		all = append(all,
			entry("V-19", "an answer to "+p.Port.Name+" by its session", tableACLOut, prioritySession,
				layout.Match(layout.IPv4, to, layout.CtState(layout.CtRpl|layout.CtTrk, layout.CtInv)), outputTx()))
		all = append(all, fromClients(n, &p, to)...)
		all = append(all, fromAny(n, &p, to)...)
	}
	return all
}

// fromClients are the entries for clients that have rules about their destinations.
func fromClients(n *layout.Node, server *layout.Pod, to layout.Term) (all []layout.Entry) {
	into := policyOf(n, server.IP()).Ingress
	for _, policy := range n.Policies {
		if policy.Egress == nil {
			continue
		}
		client := layout.Host(flow.IPSrc, policy.Pod)
		seen := map[layout.Rule]bool{}
		for _, e := range reaching(policy.Egress, server.IP()) {
			for _, i := range reaching(into, policy.Pod) {
				both, ok := intersection(e, i)
				if !ok || seen[both] {
					continue
				}
				seen[both] = true
				why := fmt.Sprintf("%v may send it, and %s may get it", policy.Pod, server.Port.Name)
				all = append(all, entry("V-15", why, tableACLOut, priorityClient, layout.Match(append(terms(both), to, client)...), outputTx()))
			}
		}
		all = append(all, entry("V-15", fmt.Sprintf("%v may send nothing else to %s", policy.Pod, server.Port.Name), tableACLOut, priorityClientDrop,
			layout.Match(layout.IPv4, to, client)))
	}
	return all
}

// fromAny are the entries for clients that may send everything.
func fromAny(n *layout.Node, server *layout.Pod, to layout.Term) (all []layout.Entry) {
	seen := map[string]bool{}
	for _, r := range rulesOr(policyOf(n, server.IP()).Ingress) {
		match := append(terms(r), to)
		if r.Other.IsValid() {
			match = append(match, layout.Net(flow.IPSrc, r.Other))
		}
		m := layout.Match(match...)
		if text := m.Text(nil); !seen[text] {
			seen[text] = true
			all = append(all, entry("V-15", server.Port.Name+" may get it", tableACLOut, priorityServer, m, outputTx()))
		}
	}
	return all
}

// policyOf is a pod's policy. If it has none, it allows everything.
func policyOf(n *layout.Node, ip netip.Addr) layout.Policy {
	for _, p := range n.Policies {
		if p.Pod == ip {
			return p
		}
	}
	return layout.Policy{Pod: ip}
}

// rulesOr are rules. For nil they are one rule that allows everything.
func rulesOr(rules *[]layout.Rule) []layout.Rule {
	if rules == nil {
		return []layout.Rule{{}}
	}
	return *rules
}

// reaching are the rules for an address.
func reaching(rules *[]layout.Rule, ip netip.Addr) (some []layout.Rule) {
	for _, r := range rulesOr(rules) {
		if !r.Other.IsValid() || r.Other.Contains(ip) {
			some = append(some, layout.Rule{Proto: r.Proto, Port: r.Port})
		}
	}
	return some
}

// intersection is the traffic that both rules allow, from any source. Proto 0 and port 0 are all.
func intersection(a, b layout.Rule) (layout.Rule, bool) {
	proto, ok := narrower(uint16(a.Proto), uint16(b.Proto))
	port, fits := narrower(a.Port, b.Port)
	return layout.Rule{Proto: uint8(proto), Port: port}, ok && fits
}

// narrower is the one of two values that is not 0. It is false if both are set and differ.
func narrower(a, b uint16) (uint16, bool) {
	if a == 0 {
		return b, true
	}
	return a, b == 0 || a == b
}

// terms match a rule's protocol and port.
func terms(r layout.Rule) []layout.Term {
	all := []layout.Term{layout.IPv4}
	if r.Proto != 0 {
		all = append(all, layout.Exact(flow.IPProto, uint64(r.Proto)))
	}
	if r.Port != 0 {
		all = append(all, dstPort(r.Proto, r.Port))
	}
	return all
}
