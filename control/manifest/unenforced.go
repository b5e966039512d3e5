package manifest

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/antrail/antrail/control/cluster"
)

// Kinds that antrail does not enforce. antrail may ignore a Secret, which asks nothing of it. It may not
// ignore an AdminNetworkPolicy, because its author relies on it. Objects of these kinds are refused,
// with their place:
//
//  1. Each kind of the group policy.networking.k8s.io, and in other groups each kind whose name ends
//     with NetworkPolicy, such as CiliumNetworkPolicy.
//  2. Each unread kind of Antrea's group, such as PacketCapture. The reports of Antrea's own programs
//     (AntreaAgentInfo) are ignored.

const (
	antreaGroup = "crd.antrea.io"
	policyGroup = "policy.networking.k8s.io"
)

// antreaReports are the kinds of Antrea's group that only report.
var antreaReports = []string{"AntreaAgentInfo", "AntreaControllerInfo"}

// insteadOf names a replacement for a kind.
var insteadOf = map[string]string{
	"PacketCapture": "antrail capture records packets",
}

// unenforced is the reason to refuse an object of an unread kind; "" if the kind may be ignored.
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

// unenforcedKind is the kind in the keys of these objects. It includes the group, so that no key
// equals that of an object that is read.
func unenforcedKind(version, kind string) cluster.Kind {
	return cluster.Kind(Clip(kind) + "." + Clip(groupOf(version)))
}

// unenforcedKey is the key of an object that is refused by its kind.
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
