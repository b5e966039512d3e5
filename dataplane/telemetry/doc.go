// Package telemetry has a switch's reports: why packets were dropped, how they walked, and
// counters. All of them cross to another process as JSON.
//
//	drop.go          drop reasons, a closed list
//	droppedpacket.go a dropped packet, and the ring of a worker's last ones
//	packetins.go     a packet for the controller
//	tracesteps.go    a packet to trace, the steps of its walk, its verdict
//	tracetext.go     a trace as text
//	tracejson.go     and as JSON
//	cacheevents.go   counters of the flow cache
//	offloadevents.go counters of the offload
//	stats.go         counters of entries, groups, meters, tables, ports and workers
//	packetcounters.go counters of all packets, and whether they agree
//	statsjson.go     counters as JSON
//	flowjson.go      entries with their counters as JSON, without reflection
package telemetry
