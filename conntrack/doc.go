// Package conntrack remembers connections: which packets belong together, in which direction, in
// what state, and how NAT translates them.
//
// A connection lives in one zone under two keys, the tuple of its original direction and that of
// its reply direction, NAT included. Track is one ct() action. It reads the packet's tuple, and
// finds the connection or begins one. It runs the protocol's state machine and translates the
// packet. It writes to Meta what later tables see as ct_state, ct_mark and ct_label. The order of
// work is Open vSwitch's. Where its userspace datapath has an error, this package differs on
// purpose.
//
// Comments and tests name rules (CT-1 to CT-47) and differences (D1 to D19) by number. RULES.md
// lists them. COVERAGE.md lists the cases of Open vSwitch's own tests.
//
// A packet's way. To know what a ct() does, read these files in this order:
//
//	track.go                   the order of work
//	advance.go                 how a packet advances its connection
//	meta.go                    the packet's conntrack state, ct() and its answer
//	tuple/                     the key for the lookup, read and rewritten
//	store/                     connections in memory, found by their keys
//	proto/                     state machines, and how long each state lasts
//	commit.go, nat.go          a new connection, and the tuple chosen for it
//	translate.go               the translation, written into the frame
//	reassembly/                fragments, which are tracked as a whole datagram
//
// The table:
//
//	conntable.go               Table and its Config
//	limits.go, shares.go       how many connections there may be
//	pages.go                   values of zones and ports by number
//	fair.go, evict.go          a port's fair share, and which connection makes room
//	sweep.go, purge.go         how connections end
//	pass.go, warm.go           known connections, faster: for the flow caches, for a batch
//	offload.go                 connections that the kernel forwards
//
// Reading it:
//
//	dump.go, connfilter.go, stats.go
//	wire.go                       all of it as JSON, for another process
//	scratch.go                    a table over another, for traces
//
// After a restart:
//
//	restore.go  which connections of an earlier process are kept
//	shield.go   which packets must not begin a connection after the table was lost
//
// Any goroutine may use a Table, and all workers share one. The locks:
//
//  1. A lookup takes no lock.
//  2. A packet that changes only the expiry and the sequence state of its connection takes no
//     lock (advance.go).
//  3. Any other packet of a connection holds the connection's lock, a bit in its cell, from
//     the state machine to the mark (store.Cell). So mark and label change together.
//  4. A packet that begins or ends a connection holds the locks of two chains (store.Index).
//  5. Locks are taken in this order: chains, cell, port. So no two goroutines wait for each
//     other.
//
// The packet path reads no clock. The caller passes the time, on the clock of Config.Now.
//
// Track on a fragment gives +inv+trk. A caller that gets fragments collects them with package
// reassembly, and tracks the whole datagram.
package conntrack
