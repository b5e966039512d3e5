// Package cluster has the objects of a cluster as plain types, and a snapshot of them all.
// No type of Kubernetes goes further than the readers of objects (package control).
//
//	objects.go  keys, names, labels and what else objects share
//	cluster.go  a snapshot of all objects
//	changed.go  the objects that differ between two snapshots
//	node.go     Nodes, NodeConfigs, Namespaces, Pods
//	service.go  Services and EndpointSlices
//	policy.go   policies, tiers and groups
//	egress.go   Egresses, pools of addresses, TrafficControls
//	traceflow.go Traceflows and their status
//	selector.go which labels a selector matches
//
// An object in a snapshot is never written again: any goroutine may keep a pointer to it
// and read it, and two snapshots with the same pointer hold the same object.
package cluster
