// Package proto has the state machines of the protocols that have states, and how long each state
// lasts.
//
//	state.go     State, the tracked state of one connection
//	tcp.go       TCP: both sides, their windows
//	sctp.go      SCTP: the association, its verification tags
//	other.go     UDP, ICMP and others: whether a reply was seen
//	machine.go   Machine, which runs the state machine of any protocol
//	timeouts.go  how long each state lasts without a packet
//	pack.go      the state of TCP as words, for memory that processors share
//
// The package knows no table. The caller finds the State of a packet, and lets no other goroutine
// use that State meanwhile. All functions except StateNames are on the packet path. They allocate
// nothing.
package proto
