// Package reassembly collects fragments until their datagram is whole. Only a whole
// datagram can be tracked, so a ct() that gets a fragment waits for the others
// (CT-35).
//
//	fragments.go  the waiting datagrams, by key; their limits and their end
//	readfragment.go where a fragment belongs in its datagram
//	piecememory.go the buffers of waiting fragments
//	whole.go      joining a datagram, and splitting it into its fragments again
//
// A fragment waits in the store's own memory, not in its port's. So a pod that sends incomplete
// datagrams does not starve a ring. In particular it does not starve the network card's ring,
// which all ports share.
//
// If a datagram can no longer become whole, because of an overlap or a limit, its fragments are
// dropped at once. The datagram stays known until its timeout, so that its later fragments are
// dropped too.
//
// Any goroutine may use a Fragments. One lock guards it.
package reassembly
