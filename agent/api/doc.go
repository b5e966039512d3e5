// Package api is the client of an agent's unix socket, with the types of requests and answers
// in JSON. Counters and times in nanoseconds are plain numbers. Matches and actions are the
// text that dumps print. Package agent/answer answers, and lists the paths.
//
//	client.go       the client; advice if no agent answers
//	entries.go      flow entries, tables, groups, meters
//	ports.go        ports and workers
//	connections.go  connections, and counters of them
//	counters.go     counters of traffic; sums that have to agree
//	map.go          the pipeline as a map
//	objects.go      the objects behind the entries
//	listing.go      objects as a table
//	tracetypes.go   one made-up packet, table by table
//	replaywalks.go  recorded packets, against the current entries
//	live.go         real packets, as they pass
//	livewatch.go    live traces at several agents
//	dropped.go      dropped packets
//	droppedtext.go  dropped packets as text
//	why.go          may one end reach another: question and answer
//	whynodes.go     several Nodes' answers, put together
//	whytext.go      the answer as text
package api
