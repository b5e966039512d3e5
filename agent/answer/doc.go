// Package answer answers clients' requests about a pipeline (agent/pipeline): as text like Open
// vSwitch's tools, as JSON, and as metrics. An agent serves it over a unix socket. Commands use
// it in their own process: for files, captures, and a switch without an agent. Package
// agent/api is the client.
//
//	answers.go            Answers; the parameters of a request
//	api.go, honest.go     the list of requests; errors if the switch does not answer
//	offline.go            files that are asked like an agent
//	withoutagent.go       a switch without an agent that is asked like one
//	replaycapture.go      recorded packets through a pipeline
//	rehearsenodes.go      recorded packets through Nodes without machines
//
// Answers:
//
//	ovstext.go, records.go          dumps as text, and selection of entries; dumps as JSON
//	conntrack.go, ctcounters.go  connections, listed and flushed; their counters
//	cache.go, offload.go         the caches of workers; packets that the kernel forwards
//	objects.go, object.go        the objects behind the entries; one of them as YAML
//	explaindump.go               dumps with the objects behind each line
//	map.go, countersnow.go, packetcounters.go the pipeline as a map; counters at one moment; sums that add up
//	answertrace.go               one made-up packet, explain, why
//	tracelive.go, tracearm.go    packets as they pass; which ones
//	dropfollow.go                the last dropped packets, and dropped packets as they come
//	watches.go                   the watches of the Kubernetes API
//
// Metrics and the page:
//
//	metrics.go, antreametrics.go, scrape.go  metrics for Prometheus; under the names of Antrea's agent
//	page.go, pageserve.go                    the page (package web); in a separate process
package answer
