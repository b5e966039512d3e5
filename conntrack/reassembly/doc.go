// Package reassembly collects fragments until their datagram is whole. Only a whole
// datagram can be tracked, so a ct() that gets a fragment waits for the others
// (CT-35).
//
//	fragments.go  the datagrams that wait, by key; their limits and their end
//	readfragment.go where a fragment belongs in its datagram
//	piecememory.go the buffers that fragments wait in
//	whole.go      a whole datagram in one piece, and back into its fragments
//
// A fragment waits in memory of the store, not in its port's. So a pod that sends incomplete
// datagrams starves no ring, in particular not the network card's, which all ports share.
//
// If a datagram can no longer become whole, because of an overlap or a limit, its fragments
// are dropped at once. The datagram stays known until its timeout, so that its later
// fragments are dropped too.
//
// Any goroutine may use a Fragments. One lock guards it.
package reassembly
