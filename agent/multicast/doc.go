// Package multicast keeps the members of multicast groups: Pods of this Node, which report
// them by IGMP, and other Nodes, whose agents do.
//
//	members.go   who has joined which group, and until when
//	querier.go   reports that come in, queries and reports that go out
//	igmpframe.go the frames of those that go out
package multicast
