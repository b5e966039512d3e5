// Package telemetry has what a switch tells: why packets were dropped, which way they took,
// and what was counted. All of it crosses to another process as JSON.
//
//	drop.go          reasons of drops, a closed list
//	droppedpacket.go a dropped packet, and the ring in which a worker keeps the last ones
//	packetins.go     a packet for the controller
//	tracesteps.go    a packet to trace, the steps of its walk, its verdict
//	tracetext.go     a trace as text
//	tracejson.go     and as JSON
//	cacheevents.go   what the flow cache counts
//	offloadevents.go what the offload counts
//	stats.go         counters of entries, groups, meters, tables, ports and workers
//	packetcounters.go what became of all packets, and whether that adds up
//	statsjson.go     counters as JSON
//	flowjson.go      entries with their counters as JSON, without reflection
package telemetry
