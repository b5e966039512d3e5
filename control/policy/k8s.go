package policy

import (
	"github.com/antrail/antrail/tables"

	"github.com/antrail/antrail/control/cluster"
)

// planNetworkPolicy is a K8s NetworkPolicy as specs: for each direction of it,
// one that isolates and one for each rule. Its rules only ever allow; log says
// whether they log.
//
// In a direction without rules, the isolation is also a rule whose peers are
// nobody. Antrea's controller makes the same rule, so that the tables hold an
// entry under the policy's conjunction id for every policy. The rule allows
// nothing and counts nothing.
func planNetworkPolicy(np *cluster.NetworkPolicy, log bool) *policyPlan {
	applied := podChoice{namespace: np.Key.Namespace, pods: &np.Pods}
	plan := &policyPlan{}
	for _, d := range []struct {
		on        bool
		direction tables.Direction
		rules     []cluster.NetworkPolicyRule
	}{{np.Ingress, tables.Ingress, np.IngressRules}, {np.Egress, tables.Egress, np.EgressRules}} {
		if !d.on {
			continue
		}
		plan.specs = append(plan.specs, &policySpec{
			key:      RuleKey{Policy: np.Key, Direction: d.direction, Index: isolationIndex},
			kind:     tables.K8sPolicy,
			action:   tables.Allow,
			applied:  []podChoice{applied},
			isolates: true,
			noRules:  len(d.rules) == 0,
		})
		for i, r := range d.rules {
			plan.specs = append(plan.specs, &policySpec{
				key:     RuleKey{Policy: np.Key, Direction: d.direction, Index: i},
				kind:    tables.K8sPolicy,
				action:  tables.Allow,
				applied: []podChoice{applied},
				peers:   networkPolicyPeers(np.Key.Namespace, r.Peers),
				ports:   r.Ports,
				log:     log,
			})
		}
	}
	return plan
}

// networkPolicyPeers are the peers of a rule; without any, it speaks of
// everybody.
func networkPolicyPeers(namespace string, peers []cluster.NetworkPolicyPeer) peerSpec {
	spec := peerSpec{any: len(peers) == 0}
	for _, p := range peers {
		if p.IPBlock != nil {
			spec.blocks = append(spec.blocks, *p.IPBlock)
			continue
		}
		spec.choices = append(spec.choices, choosePods(namespace, p.Pods, p.Namespaces))
	}
	return spec
}

// choosePods is the choice of a pod selector and a namespace selector: without
// the latter, of the policy's own namespace.
func choosePods(namespace string, pods, namespaces *cluster.Selector) podChoice {
	if namespaces == nil {
		return podChoice{namespace: namespace, pods: pods}
	}
	return podChoice{pods: pods, namespaces: namespaces}
}

// chooseEntities is choosePods for ExternalEntities.
func chooseEntities(namespace string, entities, namespaces *cluster.Selector) podChoice {
	choice := choosePods(namespace, entities, namespaces)
	choice.entities = true
	return choice
}
