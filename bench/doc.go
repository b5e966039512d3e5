// Package bench is the rig. It measures switches and forwarders, antrail and others, side by side on
// one machine, and reports how certain the figures are. A profile is one question. Its contenders are
// those that this machine can measure.
//
// profiles.go lists all profiles with their parts of the time, and run.go runs them. Packages beneath
// have the rest, from the lowest one on:
//
//	sched      times and priorities of the kernel's scheduler
//	report     figures, and how they are written
//	testbed    Nodes, links, frames and their generator
//	ovs        a private Open vSwitch
//	rig        contenders in turn, round by round; results of a run
//	workload   packets and programs for the measurements
//	conntrack  profile conntrack: connection tracking alone
//	gc         profile gc: a worker beside the garbage collector
//	forward    profile forward: frames one way
//	pipeline   profiles pipeline, policy, service and trace: entries without drivers
//	pods       profiles stream, rr, connect, tunnel, idle and trace-link: traffic of pods
package bench
