// Package manifest decodes text of YAML or JSON into plain objects (package cluster) and problems. It
// keeps the types of Kubernetes from the rest of the program. An object that antrail cannot enforce is
// a problem with its place.
//
//	decode.go                                 a text of several documents
//	problem.go                                an object that is not in force, and the reason
//	misspelt.go                               suggestions for unknown fields and kinds
//	decode_yaml.go, decode_json.go            code for all kinds
//	decode_check.go, decode_types.go
//	decode_node.go, decode_service.go         kinds of Kubernetes
//	decode_policy.go
//	decode_antrea.go, decode_antreapolicy.go  kinds of Antrea
//	decode_group.go, decode_egress.go
//	decode_traceflow.go
//	unenforced.go                             kinds that antrail does not enforce, and refuses
//	unbuilt.go                                parts of Antrea's policies that antrail refuses
//	features.go                               feature gates that antrail has or refuses
//	flexibleipam.go                           requirements of the gate AntreaIPAM
//	externalnode.go                           interfaces of external Nodes, and requirements of the gate
//	policyonly.go                             requirements of mode networkPolicyOnly
//	decode_published.go                       objects from an API server
package manifest
