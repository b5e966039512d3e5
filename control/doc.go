// Package control turns the objects of a cluster into the flow entries of a Node.
//
// In: package manifest reads objects from files, package kube gets them from the Kubernetes
// API. Package cluster has their types, and package store holds them.
//
// Builders: from a snapshot to values of package tables, and to entries. Package numbers
// assigns the numbers that entries carry.
//
//	pods.go, externallinks.go
//	serviceentries.go, services_endpoints.go
//	egress.go, trafficcontrol.go, multicast.go, traceflow.go
//	reconcile_policies.go, reconcile_peers.go  entries of the rules that package policy makes
//
// Out: package ledger has the entries that objects want, and those in the switch.
//
//	wants.go                               the results of the builders
//	reconcile.go, reconcile_attempt.go     one bundle for each difference
//	reconcile_view.go
//	inforce.go                             whether a port may open; refused edits
//	restore.go                             numbers kept over a restart
//
// Answers to people:
//
//	explain.go, sightings.go                        from an entry or packet back to the object
//	status.go, status_policies.go                   the state of each object
//	status_trafficcontrol.go, status_endpoints.go
//	progress.go, delays.go                          a Node's report to the cluster, and its delays
//	nodearound.go, ends.go, podends.go, podcidrs.go  places of Pods, Nodes and addresses
//	meant.go                                        suggestions for mistyped names
package control
