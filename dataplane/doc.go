// Package dataplane is the switch: it compiles a pipeline of flow entries,
// walks packets through it, and tells what happened. It knows fields, actions
// and verdicts, but no table, mark or zone by name: the pipeline is data given
// to it.
//
// The walk: one serves traffic, traces and packet-outs alike. To know how a
// packet goes, read these in this order:
//
//	walk.go                       from the first table to the verdict
//	security.go, securityip.go    what a port may send, checked before that
//	act.go, rewrite.go            actions, and how one writes a header
//	conntrack.go, fragment.go     ct(), and what a fragment does there
//	group.go, meter.go, learn.go  other actions of more than a few lines
//	normal.go, fdb.go             the NORMAL action, and the addresses it learns
//	packetin.go
//	output.go, offload.go         frames queued for ports
//	copies.go                     frames for copies and segments
//	drop.go, lost.go              why a packet goes nowhere, and the last of them
//
// Lookup, from a key to the entry of highest priority:
//
//	classifier.go, subtable.go  entries by mask; hash tables
//	trie.go, gates.go           prefixes; the lengths that can hold an address
//	conjunction.go              clauses that make up a conjunction
//	shape.go                    the form that a table took, for people
//
// Changes. A program is what packets walk; it never changes. A bundle makes
// another one, which one atomic store publishes:
//
//	switch.go, program.go    Switch, Apply
//	table.go, entry.go       what a program is made of: tables, entries,
//	numbered.go              and groups and meters by number
//	learned.go               entries that packets make
//	compile.go, validate.go  actions as packets run them; what is refused
//
// Speed. None of it changes what a packet meets; without it every packet walks:
//
//	cache.go, cachestats.go            the connection cache: walks that are remembered
//	signature.go, path.go              what must be the same; what is remembered
//	flowlabel.go                       whether IPv6's flow label must be
//	record.go, replay.go               how it is noted, and done again
//	opening.go                         how connections begin that differ in their ports only
//	stretch.go, asked.go               the same for parts of walks
//	stretchdraw.go, stretchtake.go
//	places.go, warm.go                 where in memory both lie, and when it is fetched
//	shortcut.go, shortcutput.go        connections given to the kernel,
//	shortcutback.go, shortcutcount.go  taken back, and counted
//
// Threads. A worker moves packets (runWorker); another goroutine expires
// entries and hands out packet-ins (switch.go, runUpkeep):
//
//	worker.go, workerports.go        turns between ports
//	workerturn.go                    how much of a batch is one turn
//	workersleep.go                   a worker's life: turns, sleep, being woken
//	workerawake.go                   when it keeps idle processors awake
//	collections.go                   whether Go's garbage collector may be at work
//	workerload.go, workerbalance.go  which worker has which port
//	workertrial.go
//
// What is told:
//
//	tally.go, sums.go, dump.go        counters
//	timing.go                         what tables cost, of one walk in a thousand
//	classsums.go
//	trace.go, tracetext.go            a walk that is watched
//	live.go, livekey.go, livewalk.go  walks of real packets, watched
//	wire.go, wireflow.go              all of it as JSON, for another process
//	wiretrace.go
package dataplane
