package bench

// UsualProfiles are those that run when none is named, in the order in which
// they run: what can be told in two minutes.
var UsualProfiles = []string{"pipeline", "policy", "service", "stream", "rr", "connect"}

// profiles are all profiles, in the order in which they run.
func profiles() []profile {
	return []profile{
		{"pipeline", 5, "what a packet costs in the pipeline: known and new connection, by entry, allocations", "A packet's way through the pipeline", runPipeline},
		{"policy", 9, "the same with 10 rules of policies and more, up to --largest", "A packet's way through the pipeline, by rules of policies", runPolicy},
		{"service", 8, "what packets to a ClusterIP cost beside 10 Services and more, up to 10,000", "A packet's way to a ClusterIP, by Services", runService},
		{"stream", 4, "bulk TCP between two pods of a Node, one stream and eight", "TCP streams between two pods of a Node", runStream},
		{"rr", 2, "round trips between two pods of a Node, with percentiles", "TCP round trips between two pods of a Node", runRR},
		{"connect", 2, "new TCP connections between two pods of a Node", "TCP connections between two pods of a Node", runConnect},
		{"tunnel", 6, "TCP, round trips and UDP between pods of two Nodes", "Between pods of two Nodes", runTunnel},
		{"forward", 12, "frames a second without loss between two veths, by size", "Forwarding between two veths without loss", runForward},
		{conntrackName, 20, "connection tracking alone, by connections up to 1,000,000 or ten times --largest", "Connection tracking", runConntrack},
		{"trace", 5, "what live traces cost a loaded worker: off, armed, 100 packets watched, all watched", "A worker that is watched", runTrace},
		{"trace-link", 5, "the same out of a TCP stream through an agent's real links", "A stream that is watched", runTraceLink},
		{"idle", 2, "processor time of a switch with 100 ports that bring nothing", "A switch with nothing to do", runIdle},
		{"gc", 5, "what garbage collection does to a busy worker, with a million connections", "A worker beside the garbage collector", runGC},
	}
}

// ComparisonNames are the names of what the profiles find, which are theirs and
// that of a second comparison of profile pipeline.
func ComparisonNames() []string { return append(ProfileNames(), tablesName) }
