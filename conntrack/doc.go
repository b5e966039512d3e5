// Package conntrack remembers connections: which packets belong together, in
// which direction, in what state, and how NAT translates them.
//
// A connection lives in one zone under two keys, the tuple of its original
// direction and that of its reply direction, NAT included. Track is one ct()
// action: it reads the packet's tuple, finds the connection or begins one,
// runs the protocol's state machine, translates the packet and says in Meta
// what later tables see as ct_state, ct_mark and ct_label. The order of work
// is Open vSwitch's; where its userspace datapath errs, we differ on purpose.
// Comments and tests name rules (CT-1 to CT-47) and differences (D1 to D19) by
// number: RULES.md has them all, COVERAGE.md the cases of Open vSwitch's own
// tests.
//
// A packet's way. To know what a ct() does, read these in this order:
//
//	track.go                   the order of work
//	look.go                    packets that only move their connection on
//	meta.go, key.go            what a packet carries; what it is looked up by
//	read.go, icmp.go           the tuple, and whether the packet is valid
//	tcp.go, sctp.go, other.go  state machines, by protocol
//	timeouts.go                how long each state is kept
//	commit.go, nat.go          a new connection, and the tuple chosen for it
//	rewrite.go                 the translation, written into the frame
//	frag.go, fragjoin.go       fragments, which are tracked when their datagram
//	fragwhole.go, fragpool.go  is whole
//
// Memory:
//
//	table.go                   Table and its Config
//	cell.go, arena.go          one connection; all of them
//	course.go                  how segments move one without its lock
//	index.go, hash.go          how a key is found
//	words.go, words_unsafe.go  words of a cell
//	checksum.go                and their checksum
//	limits.go, shares.go       how many there may be
//	fair.go, evict.go          a port's fair share, and which connection makes room
//	sweep.go, purge.go         how connections end
//	pass.go, warm.go, away.go  known connections, faster: for the connection
//	                           cache, for a batch, for the kernel
//
// Looking at it:
//
//	dump.go, filter.go, stats.go
//	wire.go                       all of it as JSON, for another process
//	scratch.go                    a table laid over another, for traces
//
// After a restart:
//
//	header.go, header_unsafe.go  an arena that outlives the process
//	restore.go, relink.go        what of it is believed, and its index
//	lost.go                      the time after the table was lost
//
// A Table may be used from any goroutine, and is one for all workers. Lookups
// take no lock, nor does a packet of a known connection that only moves its expiry and
// how far its segments have come. Any other holds that connection's lock, a bit in its cell, from the
// state machine to the mark; a connection that comes or goes holds two of 1024
// stripes (index.go).
// Locks are taken in this order: stripes, cell, port. No clock is read on the
// packet path: the caller passes the time, on the same clock as Config.Now.
//
// Track on a fragment gives +inv+trk: whoever has fragments collects them in
// Fragments (frag.go) and tracks the whole datagram.
package conntrack
