// Package flowcache remembers walks, so that packets like earlier ones need no lookup. It has two
// levels, as Open vSwitch's userspace datapath does, and one kind of table for both:
//
//	setassociative.go a set-associative hash table, with a fair share for each port
//	exact.go      exact-match level: whole walks, by the packet's signature
//	megaflows.go  megaflow level: parts of walks, by the bits that their lookups examined
//
// Parts of the exact-match level:
//
//	signature.go  the bits in which two packets must agree
//	wildcard.go   … or all but their ports, for first packets of connections
//	change.go     the change that a walk makes to the headers
//	warm.go       reading ahead for a batch
//
// Parts of the megaflow level:
//
//	megaflow.go   one megaflow
//	recording.go  how it is recorded while a packet walks
//	megaflowmasks.go the masks
//
// credit.go counts replayed packets, for both levels.
//
// The package finds and stores. Package dataplane decides which walks may be replayed, asks
// conntrack and sends the packet.
package flowcache
