// Package manifest reads objects: text of YAML or JSON comes in, plain objects (package
// cluster) and problems come out. No type of Kubernetes goes further. An object that the
// readers cannot enforce is a problem with its place.
//
//	decode.go                                 a text of several documents
//	problem.go                                something that is not in force, and why
//	misspelt.go                               the field or kind that may be meant by an unknown one
//	decode_yaml.go, decode_json.go            what all kinds share
//	decode_check.go, decode_types.go
//	decode_node.go, decode_service.go         kinds of Kubernetes
//	decode_policy.go
//	decode_antrea.go, decode_antreapolicy.go  kinds of Antrea
//	decode_group.go, decode_egress.go
//	decode_traceflow.go
//	unenforced.go                             kinds that antrail does not enforce, and refuses
//	unbuilt.go                                parts of Antrea's policies that antrail refuses
//	features.go                               feature gates: those that antrail has, and those it refuses
//	flexibleipam.go                           what the gate AntreaIPAM needs
//	externalnode.go                           external Nodes: their interfaces, and what the gate needs
//	policyonly.go                             what mode networkPolicyOnly needs
//	decode_published.go                       objects from an API server
package manifest
