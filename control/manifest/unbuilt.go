package manifest

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/control/cluster"
)

// Parts of Antrea-native policies that antrail does not support. The store refuses such a policy, as
// Antrea's webhooks refuse what Antrea cannot do. The refusal is in the log, in an Event and in get.
// After such an edit, the policy stays as it was.

var (
	errFQDN          = errors.New("peers by fqdn are not supported")
	errClusterSet    = errors.New("peers of other clusters are not supported")
	errEntitySpaces  = errors.New("externalEntitySelector with namespaces is not supported; namespaceSelector is")
	errNodes         = errors.New("policies that apply to Nodes are not enforced by the switch")
	errEgressService = errors.New("only ingress rules apply to Services")
)

// Unbuilt returns the first unsupported part of a policy, with its place.
func Unbuilt(ap *cluster.AntreaPolicy) error {
	for _, d := range []struct {
		field string
		rules []cluster.PolicyRule
	}{{"ingress", ap.Ingress}, {"egress", ap.Egress}} {
		for i := range d.rules {
			if err := unbuiltRule(&d.rules[i], ap, d.field == "egress"); err != nil {
				return fmt.Errorf("spec.%s[%d]: %w", d.field, i, err)
			}
		}
	}
	return nil
}

func unbuiltRule(r *cluster.PolicyRule, of *cluster.AntreaPolicy, egress bool) error {
	applied := r.AppliedTo
	if len(applied) == 0 {
		applied = of.AppliedTo
	}
	for _, a := range applied {
		switch {
		case a.Nodes != nil:
			return errNodes
		case a.Service != nil && egress:
			return errEgressService
		}
	}
	for i := range r.Peers {
		if err := unbuiltPeer(&r.Peers[i]); err != nil {
			return fmt.Errorf("peer %d: %w", i, err)
		}
	}
	return nil
}

func unbuiltPeer(p *cluster.PolicyPeer) error {
	switch {
	case p.ClusterSet:
		return errClusterSet
	case p.FQDN != "":
		return errFQDN
	case p.ExternalEntities != nil && p.PeerNamespaces != nil:
		return errEntitySpaces
	}
	return nil
}
