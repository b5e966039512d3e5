// Package multicast keeps the members of multicast groups: Pods of this Node and other Nodes.
// Pods report their groups by IGMP, and so do the agents of other Nodes.
//
//	members.go   the members of each group, and when each last reported
//	querier.go   reports that come in, queries and reports that go out
//	igmpframe.go the frames of those that go out
package multicast
