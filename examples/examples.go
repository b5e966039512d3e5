// Package examples holds flow files to run and to read: pipelines as flow
// entries, groups, meters and ports in the text that ovs-ofctl prints.
//
//	seed/       one Node with every kind of object, as a plain dump
//	two-nodes/  the lab's two Nodes, filled by hand and commented
//
// Each directory has a README.md that says what is in it and what to try.
package examples

import "embed"

// FS holds the files under their paths here: "two-nodes/node-a.flows",
// "seed/seed.groups".
//
//go:embed seed two-nodes
var FS embed.FS
