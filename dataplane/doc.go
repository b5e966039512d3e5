// Package dataplane is the switch: workers take packets from ports, walk them through
// tables of flow entries and send them. It knows fields, actions and verdicts, but no
// table, mark or zone by name: the pipeline is data given to it.
//
// The files, in the order that a packet meets them:
//
//	worker.go                   rounds over the ports that are awake
//	workerturn.go               how much of a port's batch is one turn, and what it cost
//	replay.go                   walks that the flow cache remembers, done again
//	walk.go                     from the first table to the verdict
//	act.go                      actions, in order
//	rewrite.go                  how an action writes a header
//	conntrack.go                ct()
//	fragment.go                 fragments at a ct()
//	learn.go                    learn actions, and entries learned in another switch
//	packetin.go                 packets to the controller, from it, and those that waited there
//	output.go                   output and floods
//	normal.go                   NORMAL: the switch that learns MAC addresses
//	workertransmit.go           frames queued for ports, completed where a port asks for it, and sent
//	copies.go                   frames for copies and segments
//
// Before the first table, security.go checks what a port may send. Lookup, from a key to
// the entry of highest priority, is package lookup.
//
// note.go is where a walk notes its steps. These observers use them:
//
//	walkrecording.go, cache.go     what the exact-match cache remembers (package flowcache)
//	trace.go                       the trace of a made-up packet
//	live.go, livewalk.go           traces of real packets
//	timing.go                      what tables cost, of one walk in a thousand
//
// Megaflows are recorded and remembered in package flowcache. offer.go offers connections
// to the kernel; package offload keeps what it forwards.
//
// The switch: switch.go has ports, changes of the pipeline, and upkeep. Package program
// compiles entries into the program that packets walk. A bundle makes another program,
// and one atomic store publishes it. packetcounters.go and dump.go show what was counted, in the
// types of package telemetry.
//
// Workers and their threads:
//
//	workerports.go    which ports a worker has, and which of them are awake
//	workersleep.go    a worker's life: turns, polling, sleep, being woken
//	workerbalance.go  which worker has which port (decided by package sched)
package dataplane
