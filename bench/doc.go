// Package bench is the rig: it measures what forwards packets, antrail and
// others, side by side on one machine, and says how sure the figures are. A
// profile is one question; its contenders are those that can answer it here.
//
// The frame:
//
//	profiles.go, profile.go   all profiles and their parts of the time; how one is run
//	contest.go                contenders in turn, round by round
//	machine.go, result.go     what figures were taken on; what a run found
//	priority.go               precedence over other programs, and where it is given up
//	report.go, comparison.go  one side's figures, and all sides' beside each other
//	compare.go                one run beside another
//	plot.go, plotgrid.go      figures as SVG
//
// Frames one way:
//
//	forward.go, forwardrate.go  profile forward, and what is asked of one contender
//	search.go, overload.go      the highest rate without loss; more than can be taken
//	forwarders.go               forwarders that only forward
//	topology.go, traffic.go     the links and processors; the generator
//
// The pipeline alone:
//
//	pipeline.go, course.go, windows.go   profiles pipeline, policy and service; their packets; how they are timed
//	policyprogram.go, serviceprogram.go  their entries
//	program.go                           entries of examples/
//	tables.go                            what each table costs
//	walker.go, switch.go                 antrail's side; a switch with two ports
//	ovswalk.go                           Open vSwitch's
//	pause.go, turnparts.go               profile gc: what the collector does to a busy worker
//	takings.go, perfring_unsafe.go       when somebody else had a processor
//	install.go                           what it takes to install entries
//	live.go, livelink.go                 profiles trace and trace-link: what a live trace costs
//
// Pods and what is between them:
//
//	pods.go, overlay.go                      contenders with two pods, on one Node and on two
//	podnode.go, podconn.go                   a Node made of namespaces, links and a bridge; the pods' connections
//	bare.go                                  two pods and a forwarder over packet sockets that only forwards
//	stream.go, rr.go, connect.go, tunnel.go  profiles of these names
//	idle.go                                  profile idle: pods that say nothing
//	raw_unsafe.go                            sockets without Go's scheduler
//	ovs.go, ovspods.go, ovstunnel.go         a private Open vSwitch, with pods and with a tunnel
//	reap.go                                  its processes, and others', taken from a thread without priority
//
// Connection tracking:
//
//	conntrack.go                          the measurement
//	cttuples.go                           its packets
//	cttable.go                            antrail's side
//	ctovs.go, ctovsload.go, ctovspair.go  Open vSwitch's
package bench
