package policy

import (
	"slices"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// entity is an ExternalEntity with a Pod's name, address and labels.
func entity(ns, name, ip string, l cluster.Labels, ports ...cluster.ContainerPort) *cluster.ExternalEntity {
	e := &cluster.ExternalEntity{Pod: *pod(ns, name, ip, l, ports...), ExternalNode: name}
	e.Key.Kind = cluster.KindExternalEntity
	return e
}

// TestExternalEntities: selectors of ExternalEntities choose no Pods, and those of Pods no
// ExternalEntities, even with equal names. This holds for peers, groups and subjects.
func TestExternalEntities(t *testing.T) {
	w := shop()
	key := cluster.Key{Kind: cluster.KindExternalEntity, Namespace: "shop", Name: "web"}
	w.put(entity("shop", "web", "192.0.2.1", labels("app", "web"), cluster.ContainerPort{Name: "http", Number: 8081, Protocol: cluster.TCP}))
	w.put(entity("ops", "web", "192.0.2.2", labels("app", "web")))
	web := selector("app", "web")
	w.put(group("vms", cluster.Group{ExternalEntities: web, Namespaces: selector("kubernetes.io/metadata.name", "ops")}))
	w.put(cnp("peers", "", 5, []cluster.PolicyRule{
		antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{ExternalEntities: web}}),
		antreaRule(cluster.ActionDrop, []cluster.PolicyPeer{{Group: "vms"}}),
	}, nil))
	w.put(&cluster.AntreaPolicy{
		Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindAntreaNetworkPolicy, Namespace: "shop", Name: "on"}}, Priority: 6,
		AppliedTo: []cluster.AppliedTo{{ExternalEntities: web}},
		Ingress:   []cluster.PolicyRule{antreaRule(cluster.ActionAllow, nil, cluster.PolicyPort{Protocol: cluster.TCP, Port: cluster.PortRef{Name: "http"}})},
		Egress:    []cluster.PolicyRule{antreaRule(cluster.ActionDrop, nil)},
	})
	want := func(on ...string) {
		t.Helper()
		w.update(t)
		got := map[string][]string{}
		for k, r := range w.rules {
			if k.Policy.Name == "on" {
				got[k.Direction.String()] = slices.Concat(addressTexts(r.to()), addressTexts(r.from()))
			} else {
				got[k.FieldPath()] = addressTexts(r.from())
			}
		}
		if !slices.Equal(got["spec.ingress[0]"], []string{"192.0.2.1/32", "192.0.2.2/32"}) || !slices.Equal(got["spec.ingress[1]"], []string{"192.0.2.2/32"}) {
			t.Errorf("peers: %v", got)
		}
		if all := slices.Concat(got["Ingress"], got["Egress"]); !slices.Equal(all, on) {
			t.Errorf("applies to %v, want %v", all, on)
		}
	}
	want()
	w.ports[key] = 4
	want("port 4", "192.0.2.1/32")
	for _, r := range w.rules {
		if r.Key.Policy.Name == "on" && r.Key.Direction.String() == "Ingress" && r.Rule.Services[0].Port != 8081 {
			t.Errorf("the named port is %d", r.Rule.Services[0].Port)
		}
	}
	delete(w.ports, key)
	want()
}
