// Package traceflow runs Traceflows: objects that ask which way a packet takes. The agent
// of the source Pod's Node sends a packet with a tag in its DSCP as that Pod. The agents of
// all Nodes watch for packets with the tag, and write what they saw into the object's status.
//
//	underway.go     the Traceflows that run, by the objects
//	runner.go       what a Runner knows, and statuses
//	phases.go       a Traceflow from its beginning to its end
//	sighting.go     the live trace that waits for the packet
//	tracedframe.go  the packet
//	observe.go      from a packet's walk to observations
//
// Traceflows from manifests have no status that Nodes share: each agent keeps its own.
package traceflow
