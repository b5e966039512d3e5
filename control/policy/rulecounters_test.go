package policy

import (
	"slices"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables"
)

// TestCountRules reads counters from a dump, and sums the parts of a rule.
func TestCountRules(t *testing.T) {
	p, err := parse.Program(parse.Sources{Flows: parse.Text("dump", `
table=EgressMetric, priority=200,ct_state=+new,ct_label=0x200000000/0xffffffff00000000,ip actions=drop
table=EgressMetric, priority=200,ct_state=-new,ct_label=0x200000000/0xffffffff00000000,ip actions=drop
table=EgressMetric, priority=200,reg0=0x400/0x400,reg3=0x5 actions=drop
table=EgressMetric, priority=0 actions=drop
table=IngressMetric, priority=200,ct_state=+new,ct_label=0x3/0xffffffff,ip actions=drop
table=IngressMetric, priority=200,ct_state=-new,ct_label=0x3/0xffffffff,ip actions=drop
table=IngressMetric, priority=200,ct_state=+new,ct_label=0x4/0xffffffff,ip actions=drop
table=IngressRule, priority=190,conj_id=3,ip actions=drop
`)})
	if err != nil {
		t.Fatal(err)
	}
	counted := map[*flow.Entry]uint64{}
	for i, e := range p.Entries {
		counted[e] = uint64(i + 1)
	}
	counters := CountRules(p.Entries, p.Names, func(e *flow.Entry) (uint64, uint64) { return counted[e], 100 * counted[e] })
	policy := cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "shop", Name: "web"}
	rule := func(d tables.Direction, index int, part string, id uint32) *RealisedRule {
		return &RealisedRule{Key: RuleKey{policy, d, index, part}, Rule: tables.Rule{ID: id}}
	}
	got := RuleRows([]*RealisedRule{
		rule(tables.Ingress, 0, "http/TCP=80", 3), rule(tables.Ingress, 0, "http/TCP=81", 4),
		rule(tables.Ingress, 1, "", 9), rule(tables.Egress, 0, "", 2), rule(tables.Egress, 1, "", 5),
	}, counters, func(r *RealisedRule) bool { return r.Rule.ID == 9 })
	want := []RuleRow{
		{policy, "Ingress", 0, "ingress[0]", cluster.ActionAllow, 0, ledger.Installed, RuleCounters{Sessions: 5 + 7, Packets: 5 + 6 + 7, Bytes: 1800}},
		{policy, "Ingress", 1, "ingress[1]", cluster.ActionAllow, 0, ledger.Pending, RuleCounters{}},
		{policy, "Egress", 0, "egress[0]", cluster.ActionAllow, 0, ledger.Installed, RuleCounters{Sessions: 1, Packets: 3, Bytes: 300}},
		{policy, "Egress", 1, "egress[1]", cluster.ActionAllow, 0, ledger.Installed, RuleCounters{Sessions: 3, Packets: 3, Bytes: 300}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%+v, want\n%+v", got, want)
	}
}
