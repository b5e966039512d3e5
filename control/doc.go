// Package control turns the objects of a cluster into the flow entries of a
// Node. No type of Kubernetes goes further than its door. To know how an object
// becomes entries, read these in this order:
//
//	objects.go, objects_cluster.go                    the plain types, one file a subject, and
//	objects_node.go, objects_service.go               a snapshot of them all
//	objects_policy.go, objects_egress.go, podport.go
//
// In: an object comes as a manifest, or from the Kubernetes API by package kube.
//
//	manifests.go, manifests_watch.go          files, and how they are watched
//	decode.go                                 the door: text comes in, plain objects go out
//	misspelt.go                               the field or kind that may be meant by one that nobody knows
//	decode_yaml.go, decode_json.go            what all kinds share there
//	decode_check.go, decode_types.go
//	decode_node.go, decode_service.go         kinds of Kubernetes
//	decode_policy.go
//	decode_antrea.go, decode_antreapolicy.go  and of Antrea
//	decode_group.go, decode_egress.go
//	unenforced.go                             kinds that promise what nothing here does: refused, not ignored
//	features.go                               feature gates: those that antrail has, and those it refuses
//	decode_published.go                       objects that an API server gives
//	store.go                                  what all sources say, and snapshots of it
//	store_derive.go, store_refuse.go          endpoints from Pods; what needs several
//	                                          objects to be judged
//	refusededits.go                           objects that stay as they were before an edit
//	                                          that is refused
//
// Builders: from a snapshot to values of package tables, and to entries.
//
//	pods.go, services.go, services_endpoints.go
//	egress.go, trafficcontrol.go
//	policies.go                                   policies, whose other files are steps on that way:
//	policies_update.go, policies_input.go         what changed
//	policies_k8s.go, policies_antrea.go           policies as rules of one form
//	policies_unbuilt.go                           what antrail does not do, and refuses
//	policies_spec.go, policies_realise.go         a rule for this Node's Pods
//	policies_ports.go, policies_ipblock.go        its ports and prefixes
//	policies_rank.go, priorities.go               its priority
//	policies_heirs.go, conjids.go                 its number
//	policies_publish.go                           the difference
//	addresssets.go, addresslists.go, selector.go  Pods that rules choose
//	groups.go                                     numbers of Services' groups and Egresses' marks
//
// Out: who wants which entry, and what the switch must change.
//
//	ledger.go, ledger_shared.go, step.go   claims, and what a change of them costs
//	desired.go                             what is wanted, and what the switch has
//	reconcile.go, reconcile_attempt.go     one bundle for each difference
//	reconcile_view.go, reconcile_peers.go
//	reconcile_policies.go
//	reconcile_memory.go                    a switch that only remembers, for tests and dumps
//	nodeside.go                            what is asked of the Node around the switch
//	recall.go, policies_recall.go          numbers kept over a restart
//
// Answers to people:
//
//	explain.go, sightings.go                        from an entry or packet back to the object
//	status.go, status_policies.go                   how far each is
//	status_trafficcontrol.go
//	policies_metrics.go                             what the rules counted
//	progress.go, spans.go, delays.go                what a Node tells the cluster, and how soon
//	topology.go, place.go, podends.go, podcidrs.go  who is where
//	meant.go                                        names that were mistyped
//
// An object, once in a snapshot, is never written again: whoever holds a pointer
// to one may keep it and read it from any goroutine, and two snapshots with the
// same pointer hold the same object.
package control
