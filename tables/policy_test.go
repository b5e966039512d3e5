package tables

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// forms are rules of every action, with and without logging, in every table
// that holds rules, and of every kind of address and protocol.
func forms(list families) (all []Rule) {
	pod := func(ip string) (all []Address) {
		for _, a := range list.ips(ip) {
			all = append(all, Address{Prefix: host(a)})
		}
		return all
	}
	id, priority := uint32(100), uint16(20000)
	add := func(r Rule) {
		id, priority = id+1, priority+1
		r.ID, r.Priority = id, priority
		if r.Kind == BaselinePolicy {
			r.Priority = uint16(id % 90)
		}
		all = append(all, r)
	}
	for _, action := range []Action{Allow, Drop, Reject, Pass} {
		for _, log := range []bool{false, true} {
			add(Rule{Kind: AntreaPolicy, Direction: Egress, Action: action, Log: log, From: pod("10.10.0.24"), AnyTo: true})
			add(Rule{Kind: AntreaPolicy, Direction: Ingress, Action: action, Log: log, AnyFrom: true, To: []Address{{Port: 37}}})
			if action != Pass {
				add(Rule{Kind: BaselinePolicy, Direction: Egress, Action: action, Log: log, From: pod("10.10.0.25"), AnyTo: true})
			}
		}
	}
	add(Rule{Kind: AntreaPolicy, Direction: Ingress, L7VLAN: 3, Log: true, From: pod("10.10.0.26"), To: []Address{{Port: 37}}})
	add(Rule{Kind: K8sPolicy, Direction: Ingress, Log: true, From: pod("172.16.0.1"), To: []Address{{Port: 38}}})
	add(Rule{Kind: AntreaPolicy, Direction: Egress, From: pod("10.10.0.24"), To: []Address{{Group: 10}, {Group: 12}}})
	add(Rule{Kind: AntreaPolicy, Direction: Ingress, Action: Drop, From: pod("172.16.0.0"),
		To: []Address{{Service: &ServiceRef{Group: 12}}}})
	add(Rule{Kind: AntreaPolicy, Direction: Ingress, AnyFrom: true, To: []Address{{Service: &ServiceRef{Group: 13}}},
		Services: []L4Match{{Proto: protoTCP, Port: 80}}})
	add(Rule{Kind: K8sPolicy, Direction: Egress, From: pod("172.16.0.7"), AnyTo: true, Services: []L4Match{{Proto: protoTCP, Port: 80}}})
	add(Rule{Kind: AntreaPolicy, Direction: Ingress, AnyFrom: true, To: []Address{{Port: 37}}, Services: []L4Match{
		{Proto: protoTCP, Port: 80}, {Proto: protoUDP}, {Proto: protoSCTP, Port: 1000, EndPort: 1005},
		{Proto: protoTCP, SrcPort: 5000, Port: 443}, {Proto: protoICMP, ICMPType: new(uint8(8)), ICMPCode: new(uint8(0))},
		{Proto: protoICMPv6, ICMPType: new(uint8(128))}, {Proto: protoICMP},
		{Proto: protoIGMP, GroupAddress: netip.MustParseAddr("224.0.0.22")}, {Proto: 47},
	}})
	add(Rule{Kind: AntreaPolicy, Direction: Ingress, AnyFrom: true, To: []Address{{Port: 37}}, Services: []L4Match{{}}})
	return all
}

// TestRuleForms shows what each form of a rule becomes: the texts are those of
// a dual-stack Node.
func TestRuleForms(t *testing.T) {
	both := families{IPv4, IPv6}
	p := New(both.config())
	var b strings.Builder
	for _, r := range forms(both) {
		b.WriteString(describe(r) + "\n")
		for _, l := range lines(t, p.Rule(r), p.Names()) {
			b.WriteString("  " + l + "\n")
		}
	}
	pod := Pod{Port: web, IPs: both.ips("10.10.0.24")}
	for _, d := range []Direction{Egress, Ingress} {
		b.WriteString("logged default drop\n  ")
		b.WriteString(strings.Join(lines(t, p.LoggedDefaultDrop(d, pod), p.Names()), "\n  ") + "\n")
	}
	compareText(t, "policies.txt", b.String())
}

func describe(r Rule) string {
	words := []string{
		map[PolicyKind]string{K8sPolicy: "K8s", AntreaPolicy: "Antrea", BaselinePolicy: "Baseline"}[r.Kind],
		map[Direction]string{Ingress: "ingress", Egress: "egress"}[r.Direction],
		map[Action]string{Allow: "allow", Drop: "drop", Reject: "reject", Pass: "pass"}[r.Action],
	}
	if r.Log {
		words = append(words, "and log")
	}
	return strings.Join(words, " ")
}

// TestClauses numbers the clauses of a rule.
func TestClauses(t *testing.T) {
	some := []Address{{Port: 1}}
	ports := []L4Match{{Proto: protoTCP, Port: 80}}
	for _, c := range []struct {
		name string
		rule Rule
		want clauses
	}{
		{"all", Rule{From: some, To: some, Services: ports}, clauses{[3]uint8{1, 2, 3}, 3}},
		{"no ports", Rule{From: some, To: some}, clauses{[3]uint8{1, 2, 0}, 2}},
		{"any source", Rule{AnyFrom: true, To: some, Services: ports}, clauses{[3]uint8{1, 2, 3}, 3}},
		{"any source and no ports", Rule{AnyFrom: true, To: some}, clauses{[3]uint8{1, 2, 0}, 2}},
		{"any destination", Rule{Direction: Egress, From: some, AnyTo: true}, clauses{[3]uint8{1, 2, 0}, 2}},
		{"any destination, ports", Rule{Direction: Egress, From: some, AnyTo: true, Services: ports}, clauses{[3]uint8{1, 2, 3}, 3}},
		{"any source, any port by name", Rule{AnyFrom: true, To: some, Services: append(ports, L4Match{})}, clauses{[3]uint8{1, 2, 0}, 2}},
		{"nobody is a source", Rule{To: some}, clauses{[3]uint8{1, 2, 0}, 2}},
		{"everything", Rule{AnyFrom: true, AnyTo: true}, clauses{[3]uint8{1, 2, 0}, 2}},
	} {
		if got := clausesOf(c.rule); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestClauseEntry: the addresses of a rule one by one make the same entries as
// the whole rule. So a change touches only its own addresses.
func TestClauseEntry(t *testing.T) {
	list := families{IPv4, IPv6}
	p := New(list.config())
	for _, r := range forms(list) {
		var single []*flow.Entry
		for _, a := range r.From {
			single = append(single, p.ClauseEntry(r, ClauseFrom, a)...)
		}
		for _, a := range r.To {
			single = append(single, p.ClauseEntry(r, ClauseTo, a)...)
		}
		all := lines(t, p.RuleClauses(r), p.Names())
		for _, l := range lines(t, single, p.Names()) {
			if !slices.Contains(all, l) {
				t.Errorf("rule %d has no entry %s", r.ID, l)
			}
		}
		if len(single) != len(r.From)+len(r.To) {
			t.Errorf("rule %d: %d entries for %d addresses", r.ID, len(single), len(r.From)+len(r.To))
		}
	}
}

// TestPortBlocks covers ranges and checks every port.
func TestPortBlocks(t *testing.T) {
	for _, c := range []struct{ first, last, blocks int }{
		{1, 65535, 16}, {80, 80, 1}, {1000, 1005, 2}, {1001, 1999, 9}, {32768, 65535, 1}, {0, 65535, 1}, {65535, 65535, 1},
	} {
		blocks := portBlocks(uint16(c.first), uint16(c.last))
		if len(blocks) != c.blocks {
			t.Errorf("%d-%d: %d blocks %v, want %d", c.first, c.last, len(blocks), blocks, c.blocks)
		}
		for port := 0; port <= 65535; port++ {
			n := 0
			for _, b := range blocks {
				if uint16(port)&b.mask == b.port {
					n++
				}
			}
			if want := port >= c.first && port <= c.last; n > 1 || (n == 1) != want {
				t.Fatalf("%d-%d: port %d is in %d blocks", c.first, c.last, port, n)
			}
		}
	}
}
