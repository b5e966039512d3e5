package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
)

// The counters of the tables IngressMetric, EgressMetric and those of multicast, by rule. Each
// entry there belongs to one conjunction id:
//
//   - The entries of a rule that allows match the id in their direction's half of ct_label. One
//     counts packets that open connections, the other all other packets.
//   - The entry of a rule that drops or rejects matches the id in reg3.
//
// Rules that Pass are not counted.

// RuleCounters has the counters of a rule. Sessions are the connections that it allowed, or the
// packets that it refused. Bytes are of whole frames.
type RuleCounters struct {
	Sessions uint64 `json:"sessions"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
}

// Plus returns the sum of both.
func (c RuleCounters) Plus(o RuleCounters) RuleCounters {
	return RuleCounters{c.Sessions + o.Sessions, c.Packets + o.Packets, c.Bytes + o.Bytes}
}

// RuleRow is a rule in this Node's tables, with the sum of its parts' counters.
type RuleRow struct {
	Policy    cluster.Key        `json:"-"`
	Direction string             `json:"direction"` // Ingress, Egress
	Index     int                `json:"index"`
	Name      string             `json:"name"` // the rule's own, or its place in the policy: ingress[0]
	Action    cluster.RuleAction `json:"action"`
	// Priority is that of its entries, higher first. It is 0 for rules of K8s NetworkPolicies,
	// which have no order among them.
	Priority uint16 `json:"priority,omitempty"`
	// State is pending while the switch lacks a part of the rule in its current form.
	State ledger.State `json:"state"`
	RuleCounters
}

// CountRules reads the counters of the Metric tables' entries, by conjunction id. It skips
// entries of other tables.
func CountRules(entries []*flow.Entry, names *flow.Names, count Counter) map[uint32]RuleCounters {
	rules := map[uint32]RuleCounters{}
	for _, e := range entries {
		id, sessions := CountedBy(e, names.Table(e.Table))
		if id == 0 {
			continue
		}
		packets, bytes := count(e)
		c := RuleCounters{Packets: packets, Bytes: bytes}
		if sessions {
			c.Sessions = packets
		}
		rules[id] = rules[id].Plus(c)
	}
	return rules
}

// CountedBy returns the conjunction id that an entry of a Metric table counts for, and whether
// each packet is a session. The id is 0 for other entries.
func CountedBy(e *flow.Entry, table string) (id uint32, sessions bool) {
	shift := 0
	switch table {
	case "IngressMetric", "MulticastEgressMetric", "MulticastIngressMetric":
	case "EgressMetric":
		shift = 32
	default:
		return 0, false
	}
	if id, mask := e.Match.Get(flow.Reg0 + 3); !mask.IsZero() {
		return uint32(id.Lo), true
	}
	label, _ := e.Match.Get(flow.CTLabel)
	state, _ := e.Match.Get(flow.CTState)
	return uint32(label.Lo >> shift), state.Lo&ctStateNew != 0
}

// ctStateNew is the bit of ct_state that the first packets of connections have (OVS, CS_NEW).
const ctStateNew = 1

// RuleRows joins realised rules with counters by conjunction id: one row for each rule of each
// policy, in the order of the rules. waits reports whether the switch lacks a part.
func RuleRows(rules []*RealisedRule, counters map[uint32]RuleCounters, waits func(*RealisedRule) bool) []RuleRow {
	rows := []RuleRow{}
	index := map[RuleKey]int{}
	for _, r := range rules {
		key := r.Key
		key.Part = ""
		i, seen := index[key]
		if !seen {
			i = len(rows)
			index[key] = i
			rows = append(rows, ruleRow(r))
		}
		rows[i].RuleCounters = rows[i].Plus(counters[r.Rule.ID])
		if waits(r) {
			rows[i].State = ledger.Pending
		}
	}
	slices.SortStableFunc(rows, func(a, b RuleRow) int {
		return cmp.Or(a.Policy.Compare(b.Policy), -cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Index, b.Index))
	})
	return rows
}

func ruleRow(r *RealisedRule) RuleRow {
	return RuleRow{
		Policy: r.Key.Policy, Direction: r.Key.Direction.String(), Index: r.Key.Index, Name: r.Title(),
		Action: ActionOf(r.Rule.Action), Priority: r.Rule.Priority, State: ledger.Installed,
	}
}

// Title is the rule's name, or its place in the policy if it has none: ingress[0].
func (r *RealisedRule) Title() string {
	if r.Name != "" {
		return r.Name
	}
	return strings.TrimPrefix(r.Key.FieldPath(), "spec.")
}

// Origin is the rule's place in its policy.
func (r *RealisedRule) Origin() ledger.Origin {
	return ledger.Origin{Object: r.Key.Policy, Field: r.Key.FieldPath(), Rule: r.Name}
}

// Counter reads the counters of an entry from a switch. A switch without traffic has a nil
// Counter.
type Counter func(*flow.Entry) (packets, bytes uint64)
