package control

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables"
)

// changes is an Installer that counts changes.
type changes struct {
	ledger.Installer
	count  int
	purged []ledger.Purge
}

func (c *changes) Apply(b *flow.Bundle) error {
	c.count += len(b.Add) + len(b.Delete) + len(b.Groups) + len(b.DeleteGroups) + len(b.Meters) + len(b.DeleteMeters)
	return c.Installer.Apply(b)
}

func (c *changes) Purge(all []ledger.Purge) { c.purged = append(c.purged, all...) }

// restart replaces the Reconciler by a new one, which knows only what the earlier one stored in files.
func (x *telling) restart() *changes {
	x.t.Helper()
	var kept []byte
	m, p := x.r.Remember(), x.has()
	kept, err := json.Marshal(m)
	if err != nil {
		x.t.Fatal(err)
	}
	m = &Memory{}
	if err := json.Unmarshal(kept, m); err != nil {
		x.t.Fatal(err)
	}
	to := &changes{Installer: x.sw}
	x.r = NewReconciler(storyNode, to, func() time.Time { return x.clock })
	if err := x.r.Restore(m, reread(x.t, p)); err != nil {
		x.t.Fatal(err)
	}
	return to
}

// reread parses a program from its own text.
func reread(t *testing.T, p *flow.Program) *flow.Program {
	t.Helper()
	n := &flow.Program{Names: p.Names, First: p.First, Meters: p.Meters}
	for _, e := range p.Entries {
		e, err := parse.Entry(e.Text(flow.Format{Names: p.Names}), p.Names)
		if err != nil {
			t.Fatal(err)
		}
		n.Entries = append(n.Entries, e)
	}
	for _, g := range p.Groups {
		g, err := parse.Group(g.Text(p.Names), p.Names)
		if err != nil {
			t.Fatal(err)
		}
		n.Groups = append(n.Groups, g)
	}
	return n
}

// restarted runs the story in a series of processes. Each step happens while none runs. The result of a step is the same
// as in one process. A process that finds unchanged objects changes nothing.
func (s *story) restarted(t *testing.T, base []cluster.Object, dumps [][]string) {
	x := newTelling(t, base, nil)
	start := x.dump()
	for i, step := range s.steps {
		x.restart()
		x.change(step.objects, step.gone)
		if ok, diff := sameDump(dumps[i], x.dump()); !ok && !s.ordered() {
			t.Errorf("%s, while no process ran:\n%s", step.name, diff)
		}
		was := x.dump()
		to := x.restart()
		x.change(nil, nil)
		if diff := diffDumps(was, x.dump()); diff != "" || to.count > 0 || len(to.purged) > 0 {
			t.Errorf("%s: started again, %d changes and %v are purged:\n%s", step.name, to.count, to.purged, diff)
		}
	}
	x.restart()
	x.end(s, base, start)
}

// TestRestoreRefuses refuses invalid numbers, and a Memory that comes after the first snapshot.
func TestRestoreRefuses(t *testing.T) {
	web, db := cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "web"}, cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "db"}
	rule := policy.RuleKey{Policy: cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "default", Name: "p"}}
	other := policy.RuleKey{Policy: cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "default", Name: "q"}}
	for want, m := range map[string]*Memory{
		"group of Service/default/db: 9 is taken":                  {Groups: []GroupNumber{{Service: web, ID: 9}, {Service: db, ID: 9}}},
		"group of Service/default/web: 3 is taken, or not":         {Groups: []GroupNumber{{Service: web, ID: 3}}},
		"group of Service/default/web: its owner has the number 9": {Groups: []GroupNumber{{Service: web, ID: 9}, {Service: web, ID: 10}}},
		"mark of 192.0.2.1: 256 is taken, or not between":          {Marks: []MarkNumber{{netip.MustParseAddr("192.0.2.1"), 256}}},
		"conjunction id 2 of NetworkPolicy/default/q":              {RuleNumbers: policy.RuleNumbers{Rules: []policy.RuleNumber{{Rule: rule, ID: 2}, {Rule: other, ID: 2}}}},
		"conjunction id 3 of NetworkPolicy/default/p":              {RuleNumbers: policy.RuleNumbers{Rules: []policy.RuleNumber{{Rule: rule, ID: 2}, {Rule: rule, ID: 3}}}},
		"conjunction id 4294967295 of NetworkPolicy":               {RuleNumbers: policy.RuleNumbers{Rules: []policy.RuleNumber{{Rule: rule, ID: 1<<32 - 1}}}},
		"VLAN of NetworkPolicy/default/p spec.ingress[0]: ":        {RuleNumbers: policy.RuleNumbers{VLANs: []policy.RuleNumber{{Rule: rule, ID: 4095}}}},
		"priority 9 of rules of rank 5":                            {RuleNumbers: policy.RuleNumbers{Priorities: []policy.RulePriority{{Kind: tables.AntreaPolicy, Rank: 5, Priority: 9}}}},
		"priority 300 of rules of rank 6": {RuleNumbers: policy.RuleNumbers{Priorities: []policy.RulePriority{
			{Kind: tables.AntreaPolicy, Rank: 5, Priority: 200}, {Kind: tables.AntreaPolicy, Rank: 6, Priority: 300}}}},
		"priority 300 of rules of rank 7": {RuleNumbers: policy.RuleNumbers{Priorities: []policy.RulePriority{{Kind: 77, Direction: 9, Rank: 7, Priority: 300}}}},
	} {
		r := NewReconciler(storyNode, ledger.NewMemorySwitch(), time.Now)
		if err := r.Restore(m, &flow.Program{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if r.owned != nil || r.ledger.Inherited() {
			t.Errorf("%s: something was taken", want)
		}
	}
	x := newTelling(t, readManifest(t, "testdata/stories/node.yaml"), nil)
	if err := x.r.Restore(&Memory{}, &flow.Program{}); err == nil {
		t.Error("a Memory was accepted after the first snapshot")
	}
}
