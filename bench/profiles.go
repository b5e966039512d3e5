package bench

import (
	"github.com/antrail/antrail/bench/conntrack"
	"github.com/antrail/antrail/bench/forward"
	"github.com/antrail/antrail/bench/gc"
	"github.com/antrail/antrail/bench/pipeline"
	"github.com/antrail/antrail/bench/pods"
)

// UsualProfiles are the profiles that run if none is named, in the order in which they run. They take
// two minutes.
var UsualProfiles = []string{"pipeline", "policy", "service", "stream", "rr", "connect"}

// profiles are all profiles, in the order in which they run. Those between pods share contenders.
func profiles(between *pods.Profiles) []profile {
	return []profile{
		{"pipeline", 5, "what a packet costs in the pipeline: known and new connection, by entry, allocations", "A packet's way through the pipeline", pipeline.RunPipeline},
		{"policy", 9, "the same with 10 rules of policies and more, up to --largest", "A packet's way through the pipeline, by rules of policies", pipeline.RunPolicy},
		{"service", 8, "what packets to a ClusterIP cost beside 10 Services and more, up to 10,000", "A packet's way to a ClusterIP, by Services", pipeline.RunService},
		{"programs", 4, "what packets between two pods cost in the programs beside Antrea's", "A packet's way through other programs", pipeline.RunPrograms},
		{"stream", 4, "bulk TCP between two pods of a Node, one stream and eight", "TCP streams between two pods of a Node", between.RunStream},
		{"rr", 2, "round trips between two pods of a Node, with percentiles", "TCP round trips between two pods of a Node", between.RunRR},
		{"connect", 2, "new TCP connections between two pods of a Node", "TCP connections between two pods of a Node", between.RunConnect},
		{"tunnel", 6, "TCP, also by iperf3, round trips, connections and UDP between pods of two Nodes", "Between pods of two Nodes", pods.RunTunnel},
		{"gateway", 6, "TCP, also by iperf3, and UDP between a pod and a host outside, by masquerading and by a NodePort", "Between a pod and the outside", pods.RunGateway},
		{"forward", 12, "frames a second without loss between two veths, by size", "Forwarding between two veths without loss", forward.Run},
		{conntrack.Name, 20, "connection tracking alone, by connections up to 1,000,000 or ten times --largest", "Connection tracking", conntrack.RunProfile},
		{"trace", 5, "what live traces cost a loaded worker: off, armed, 100 packets watched, all watched", "A worker that is watched", pipeline.RunTrace},
		{"trace-link", 5, "the same out of a TCP stream through an agent's real links", "A stream that is watched", pods.RunTraceLink},
		{"idle", 2, "processor time of a switch with 100 ports that bring nothing", "A switch with nothing to do", pods.RunIdle},
		{"gc", 5, "what garbage collection does to a busy worker, with a million connections", "A worker beside the garbage collector", gc.Run},
	}
}

// ComparisonNames are the names of all comparisons that profiles find. Each profile has one of its own
// name, and profile pipeline has a second one.
func ComparisonNames() []string { return append(ProfileNames(), pipeline.TablesName) }
