package control

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// TestSightings finds the rules and Pods that exist, and no others.
func TestSightings(t *testing.T) {
	x, _ := newRecorded(t, spareYAML+strings.Replace(guardYAML, "[Ingress]}", "[Ingress], ingress: [{ports: [{protocol: TCP, port: 80}]}]}", 1))
	if n, ok := x.r.PodAt(13); !ok || n != (cluster.Name{Namespace: "default", Name: "spare"}) {
		t.Errorf("at port 13: %v %v", n, ok)
	}
	if n, ok := x.r.PodAt(21); ok {
		t.Errorf("at port 21, which is not a Pod's: %v", n)
	}
	rows := x.r.Policies(nil)
	if len(rows) != 1 || len(rows[0].Rules) != 1 {
		t.Fatalf("policies %+v", rows)
	}
	rule := x.r.RuleByID(2)
	if rule == nil || rule.Key.Policy != guardKey || rule.Title() != "ingress[0]" {
		t.Fatalf("rule 2 is %+v", rule)
	}
	x.change(nil, []cluster.Key{guardKey})
	if rule := x.r.RuleByID(2); rule != nil {
		t.Errorf("rule 2 is still %v", rule.Key)
	}
}
