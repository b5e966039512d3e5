package manifest

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/antrail/antrail/control/cluster"
)

// Kinds that promise something of the network which nothing here does. A Secret may be
// ignored: antrail does nothing for it. An AdminNetworkPolicy may not: an operator that
// applies it relies on it. So objects of these kinds are refused, with their place:
//
//  1. Each kind of the group policy.networking.k8s.io, and in any other group each kind
//     whose name ends with NetworkPolicy, such as CiliumNetworkPolicy.
//  2. Each kind of Antrea's group that is not read, such as PacketCapture. The reports that
//     Antrea's own programs write there (AntreaAgentInfo) are ignored.

const (
	antreaGroup = "crd.antrea.io"
	policyGroup = "policy.networking.k8s.io"
)

// antreaReports are the kinds of Antrea's group that only report.
var antreaReports = []string{"AntreaAgentInfo", "AntreaControllerInfo"}

// insteadOf is what to use in place of a kind.
var insteadOf = map[string]string{
	"PacketCapture": "antrail capture records packets",
}

// unenforced says why an object of a kind that is not read is refused; "" for a kind that
// may be ignored.
func unenforced(version, kind string) string {
	group := groupOf(version)
	switch {
	case group == policyGroup || strings.HasSuffix(kind, "NetworkPolicy"):
		return fmt.Sprintf("antrail does not enforce kind %s of %s; it enforces NetworkPolicy of networking.k8s.io/v1, and ClusterNetworkPolicy and NetworkPolicy of %s",
			Clip(kind), Clip(version), antreaV1beta1)
	case group == antreaGroup && !slices.Contains(antreaReports, kind):
		reason := fmt.Sprintf("antrail does not have kind %s of %s", Clip(kind), Clip(version))
		if instead := insteadOf[kind]; instead != "" {
			reason += "; " + instead
		}
		return reason
	}
	return ""
}

// unenforcedKind is the kind in keys of objects that are refused by their kind. It has
// the group, so that no such object is taken for one of a kind that is read.
func unenforcedKind(version, kind string) cluster.Kind {
	return cluster.Kind(Clip(kind) + "." + Clip(groupOf(version)))
}

// unenforcedKey names an object that is refused by its kind.
func unenforcedKey(n *yaml.Node, version, kind string) cluster.Key {
	k := reader{kind: unenforcedKind(version, kind)}.identity(n)
	if meta := child(n, "metadata"); meta != nil {
		if v := child(meta, "namespace"); v != nil {
			k.Namespace = clipName(v.Value)
		}
	}
	if k.Name == "" {
		return cluster.Key{}
	}
	return k
}
