// Package control turns the objects of a cluster into the flow entries of a Node.
//
// In: package manifest reads objects from files, package kube gets them from the Kubernetes
// API. Package cluster has their types, and package store keeps them.
//
// Builders: from a snapshot to values of package tables, and to entries. Package numbers
// assigns the numbers that entries carry.
//
//	pods.go, externallinks.go
//	serviceentries.go, services_endpoints.go
//	egress.go, trafficcontrol.go, multicast.go, traceflow.go
//	reconcile_policies.go, reconcile_peers.go  entries of the rules that package policy makes
//
// Out: package ledger has what objects want and what the switch has.
//
//	wants.go                               how the builders speak to the reconciler
//	reconcile.go, reconcile_attempt.go     one bundle for each difference
//	reconcile_view.go
//	inforce.go                             whether a port may open; refused edits
//	restore.go                             numbers kept over a restart
//
// Answers to people:
//
//	explain.go, sightings.go                        from an entry or packet back to the object
//	status.go, status_policies.go                   how far each is
//	status_trafficcontrol.go, status_endpoints.go
//	progress.go, delays.go                          what a Node tells the cluster, and how soon
//	nodearound.go, ends.go, podends.go, podcidrs.go  who is where
//	meant.go                                        names that were mistyped
package control
