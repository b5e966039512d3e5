// Package answer answers what clients ask of a pipeline (agent/pipeline): as text in the
// manner of Open vSwitch's tools, as JSON, and as metrics. An agent serves it over a unix
// socket. Commands use it in their own process for files, captures, and a switch that has
// no agent. Package agent/api is the client.
//
//	answers.go            Answers; what the parameters of a question say
//	api.go, honest.go     the list of questions; no answer from a switch that is away
//	offline.go            files that are asked like an agent
//	withoutagent.go       a switch without an agent that is asked like one
//	replaycapture.go      recorded packets through a pipeline
//	rehearsenodes.go      recorded packets through Nodes without machines
//
// Answers:
//
//	ovstext.go, records.go          dumps as text, and which entries they have; as JSON
//	conntrack.go, ctcounters.go  connections, listed and flushed; their counters
//	cache.go, offload.go         the exact-match cache; packets that the kernel forwards
//	objects.go, object.go        the objects behind the entries; one of them as YAML
//	explaindump.go               dumps with the objects behind each line
//	map.go, countersnow.go, packetcounters.go the pipeline as a map; counters at one moment; sums that agree
//	answertrace.go               one made-up packet, explain, why
//	tracelive.go, tracearm.go    packets as they pass; which ones
//	dropfollow.go                the last dropped packets, and dropped packets as they come
//	watches.go                   the watches of the Kubernetes API
//
// Metrics and the page:
//
//	metrics.go, antreametrics.go, scrape.go  metrics for Prometheus; under the names of Antrea's agent
//	page.go, pageserve.go                    the page (package web); in a process of its own
package answer
