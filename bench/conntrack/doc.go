// Package conntrack is profile conntrack: connection tracking alone, that of antrail and that of Open
// vSwitch's userspace datapath.
//
//	conntrack.go            the comparison
//	options.go, figures.go  options of a run; figures that it measures
//	tuples.go               the packets, in Go and in the kernel
//	contendertable.go       antrail's side
//	ovs.go                  Open vSwitch's side
//	ovsload.go              its packets and what they cost
//	ovspair.go              its side with two polling threads
package conntrack
