// Package examples holds pipelines to run and to read. They are objects of a cluster, or flow
// entries, groups, meters and ports in the text that ovs-ofctl prints.
//
//	web-app/    the lab's two Nodes as Kubernetes and Antrea objects: the seed's
//	seed/       one Node with every kind of object, as a plain dump
//	two-nodes/  the lab's two Nodes, written by hand and commented
//
// Each directory has a README.md with its contents and things to try.
package examples

import "embed"

// FS holds the files under their paths here: "two-nodes/node-a.flows",
// "web-app/pods.yaml".
//
//go:embed seed two-nodes web-app
var FS embed.FS
