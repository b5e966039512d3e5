// Package flowcache remembers walks, so that packets like earlier ones need no lookup.
// It has two levels, as Open vSwitch's userspace datapath does, and one kind of table for
// both:
//
//	setassociative.go a set-associative hash table, with a fair share for each port
//	exact.go      exact-match level: whole walks, by the packet's signature
//	megaflows.go  megaflow level: parts of walks, by the bits that their lookups examined
//
// What the exact-match level remembers:
//
//	signature.go  what two packets must have the same
//	wildcard.go   … or all but their ports, for first packets of connections
//	change.go     what a walk does to the headers
//	warm.go       reading ahead for a batch
//
// What the megaflow level remembers:
//
//	megaflow.go   one megaflow
//	recording.go  how it is noted while a packet walks
//	megaflowmasks.go the masks
//
// credit.go counts packets that were replayed, for both.
//
// The package finds and remembers. Package dataplane decides what may be replayed, asks
// conntrack and sends the packet.
package flowcache
