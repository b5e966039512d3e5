package policy

import (
	"github.com/antrail/antrail/tables"

	"github.com/antrail/antrail/control/cluster"
)

// planNetworkPolicy turns a K8s NetworkPolicy into specs: for each of its directions, one that
// isolates and one for each rule. All rules allow; log says whether they log.
//
// In a direction without rules, the isolation is also a rule without peers. Antrea's controller
// makes the same rule. The tables thus hold an entry with the policy's conjunction id for every
// policy. The rule allows nothing and counts nothing.
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

// networkPolicyPeers returns the peers of a rule. Without peers any address matches.
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

// choosePods is the choice of a pod selector and a namespace selector. Without a namespace
// selector, it chooses from the policy's own namespace.
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
