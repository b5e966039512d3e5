// Package numbers assigns the numbers that entries of objects carry. Each number stays with
// its owner, also over a restart of the agent (Restore).
//
//	allocator.go   small numbers: group ids, packet marks, VLAN ids
//	conjids.go     conjunction ids, which rest before they are used again
//	priorities.go  OpenFlow priorities of Antrea-native rules
//
// Nothing here is safe for concurrent use.
package numbers
