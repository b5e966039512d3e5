package vppl3

import (
	"slices"

	"github.com/antrail/antrail/tables/layout"
)

// Program is the pipeline of routed pods.
var Program = &layout.Program{
	Name:        "vppl3",
	HasPolicies: true,
	Sentence:    "Pods that are routed, as Contiv-VPP attached them: a /32 each, one MAC address for all",
	Tables: []layout.Table{
		{Name: "acl-plugin-in-ip4-fa", Stage: "Input", Number: tableACLIn},
		{Name: "nat44-out2in", Stage: "NAT", Number: tableOut2In},
		{Name: "nat44-in2out", Stage: "NAT", Number: tableIn2Out},
		{Name: "nat44-in2out-slowpath", Stage: "NAT", Number: tableSlowpath},
		{Name: "ip4-lookup", Stage: "Routing", Number: tableLookup},
		{Name: "ip4-rewrite", Stage: "Routing", Number: tableRewrite},
		{Name: "acl-plugin-out-ip4-fa", Stage: "Output", Number: tableACLOut},
	},
	Marks:  marks,
	Build:  build,
	Sample: sample,
}

// build makes all entries for a Node.
func build(n *layout.Node) ([]layout.Entry, error) {
	if err := check(n); err != nil {
		return nil, err
	}
	return slices.Concat(aclIn(n), out2In(n), in2Out(), slowpath(n), lookup(n), rewrite(n), aclOut(n)), nil
}
