package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// isolationEntries are the entries of the guard's conjunction, with their explanations.
var isolationEntries = map[string]string{
	"table=IngressRule, priority=200,reg1=0xd actions=conjunction(2,2/2)":                                                                                         "NetworkPolicy/default/guard spec.ingress",
	"table=IngressRule, priority=190,conj_id=2,ip actions=set_field:0x2->reg6,ct(commit,table=IngressMetric,zone=65520,exec(set_field:0x2/0xffffffff->ct_label))": "NetworkPolicy/default/guard spec.ingress",
	"table=IngressMetric, priority=200,ct_state=+new,ct_label=0x2/0xffffffff,ip actions=goto_table:ConntrackCommit":                                               "NetworkPolicy/default/guard spec.ingress",
	"table=IngressMetric, priority=200,ct_state=-new,ct_label=0x2/0xffffffff,ip actions=goto_table:ConntrackCommit":                                               "NetworkPolicy/default/guard spec.ingress",
	"table=IngressDefaultRule, priority=200,reg1=0xd actions=drop":                                                                                                "NetworkPolicy/default/guard spec.podSelector; Pod/default/spare isolated for ingress",
}

// TestIsolationIsARule: a policy without rules is a conjunction without peers in the tables. Its entries are
// explained, and it keeps its id in the next process. The rows of the policy's rules do not include it.
func TestIsolationIsARule(t *testing.T) {
	x, _ := newRecorded(t, spareYAML+guardYAML)
	x.wantIsolation(true)
	to := x.restart()
	x.change(nil, nil)
	if to.count != 0 {
		t.Errorf("the next process makes %d changes", to.count)
	}
	x.wantIsolation(true)
	for _, p := range x.r.Policies(countingAll) {
		if len(p.Rules) != 0 || p.Packets != 0 || p.State != ledger.Installed {
			t.Errorf("%s is %s, has rules %v and %d packets", p.Object, p.State, p.Rules, p.Packets)
		}
	}
	x.change(decodeAll(t, guardYAML+"\n"), []cluster.Key{spareKey}) // it applies to no Pod now
	x.wantIsolation(false)
	rules := strings.Replace(guardYAML, "policyTypes: [Ingress]", "ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]", 1)
	x.change(decodeAll(t, spareYAML+rules), nil)
	for _, ex := range x.r.EntriesOf(guardKey) {
		for _, o := range ex.Origins {
			if o.Field == "spec.ingress" {
				t.Errorf("with a rule, %s is still for %v", ex.Entry, o)
			}
		}
	}
}

// wantIsolation checks the guard's entries and their explanations.
func (x *telling) wantIsolation(want bool) {
	x.t.Helper()
	dump := x.dump()
	for line, origins := range isolationEntries {
		if slices.Contains(dump, line) != want {
			x.t.Errorf("is not %v: %s\nin\n%s", want, line, strings.Join(dump, "\n"))
		}
		if !want {
			continue
		}
		found, err := x.r.ExplainLine(line)
		if err != nil || len(found) != 1 {
			x.t.Errorf("%s: %d entries, %v", line, len(found), err)
			continue
		}
		var got []string
		for _, o := range found[0].Origins {
			got = append(got, o.String())
		}
		if strings.Join(got, "; ") != origins {
			x.t.Errorf("%s\nis for %v, want %s", line, got, origins)
		}
	}
}
