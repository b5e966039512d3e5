// Package bench is the rig: it measures switches and forwarders, antrail and others, side by side on
// one machine, and says how sure the figures are. A profile is one question. Its contenders are those
// that can answer it on this machine.
//
// profiles.go lists all profiles with their parts of the time, and run.go runs them. Packages beneath
// have the rest, from the lowest one on:
//
//	sched      what the kernel's scheduler tells and does
//	report     figures, and how they are written
//	testbed    Nodes, links, frames and their generator
//	ovs        a private Open vSwitch
//	rig        contenders in turn, round by round; what a run found
//	workload   packets and programs that switches are measured with
//	conntrack  profile conntrack: connection tracking alone
//	gc         profile gc: a worker beside the garbage collector
//	forward    profile forward: frames one way
//	pipeline   profiles pipeline, policy, service and trace: entries without drivers
//	pods       profiles stream, rr, connect, tunnel, idle and trace-link: traffic of pods
package bench
