package manifest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// Tiers and groups of Antrea-native policies. The store checks their relations.

const (
	maxTierPriority = 250   // of a user's tier; higher ones are Antrea's
	maxChildGroups  = 10000 // of one group
)

func decodeTier(c *check, in *tierManifest) cluster.Object {
	at := specAt.Child("priority")
	t := &cluster.Tier{Meta: c.meta}
	if in.Spec.Priority == nil {
		c.required(at, "")
		return t
	}
	t.Priority = *in.Spec.Priority
	own, isDefault := cluster.DefaultTierPriorities[in.Name]
	switch {
	case isDefault && t.Priority != own:
		c.invalid(at, t.Priority, "tier %s has priority %d from the start", in.Name, own)
	case !isDefault && (t.Priority < 0 || t.Priority > maxTierPriority):
		c.invalid(at, t.Priority, "must be between 0 and %d, inclusive", maxTierPriority)
	}
	return t
}

func decodeGroup(c *check, in *groupManifest) cluster.Object {
	s := &in.Spec
	g := &cluster.Group{
		Meta:             c.meta,
		Pods:             c.selector(specAt.Child("podSelector"), s.PodSelector),
		Namespaces:       c.selector(specAt.Child("namespaceSelector"), s.NamespaceSelector),
		ExternalEntities: c.selector(specAt.Child("externalEntitySelector"), s.ExternalEntitySelector),
		Service:          c.reference(specAt.Child("serviceReference"), s.ServiceReference),
	}
	c.groupModes(s.PodSelector, s.NamespaceSelector, g, map[string]bool{
		"externalEntitySelector": s.ExternalEntitySelector != nil,
		"ipBlocks":               len(s.IPBlocks) > 0,
		"serviceReference":       s.ServiceReference != nil,
		"childGroups":            len(s.ChildGroups) > 0,
	})
	for i, b := range s.IPBlocks {
		g.IPBlocks = append(g.IPBlocks, c.block(specAt.Child("ipBlocks").Index(i), b.CIDR, b.Except))
	}
	if len(s.ChildGroups) > maxChildGroups {
		c.faults = append(c.faults, field.TooMany(specAt.Child("childGroups"), len(s.ChildGroups), maxChildGroups))
		return g
	}
	for i, name := range s.ChildGroups {
		g.ChildGroups = append(g.ChildGroups, c.name(specAt.Child("childGroups").Index(i), name))
	}
	return g
}

// groupModes checks that a group selects in one way. An empty group is valid.
func (c *check) groupModes(pods, namespaces *metav1.LabelSelector, g *cluster.Group, used map[string]bool) {
	used["podSelector or namespaceSelector"] = pods != nil || namespaces != nil && g.ExternalEntities == nil
	if names := modes(used); len(names) > 1 {
		c.forbidden(specAt, strings.Join(names, " and ")+" may not be set together")
	}
}
