// Package cluster defines the objects of a cluster as plain types, and a snapshot of them all.
// Only the readers of objects below package control use types of Kubernetes.
//
//	objects.go  keys, names, labels and other things that objects share
//	cluster.go  a snapshot of all objects
//	changed.go  the objects that differ between two snapshots
//	node.go     Nodes, NodeConfigs, Namespaces, Pods
//	service.go  Services and EndpointSlices
//	policy.go   policies, tiers and groups
//	egress.go   Egresses, pools of addresses, TrafficControls
//	traceflow.go Traceflows and their status
//	selector.go which labels a selector matches
//
// Nothing writes an object once it is in a snapshot, so any goroutine may keep and read it.
// Two snapshots with the same pointer hold the same object.
package cluster
