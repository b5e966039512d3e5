// Package api is what a client and an agent say to each other: a client of the agent's
// unix socket, the questions that take a body, and the answers as JSON. Numbers of
// packets, bytes and nanoseconds are plain numbers; matches and actions are the text that
// dumps print. Package agent answers, and lists the paths.
//
//	client.go       the client; what to do if nobody answers
//	entries.go      flow entries, tables, groups, meters
//	ports.go        ports and workers
//	connections.go  connections, and counters of them
//	counters.go     what changes as packets pass; sums that agree
//	map.go          the pipeline as a map
//	objects.go      the objects behind the entries
//	listing.go      objects as a table
//	tracetypes.go   one made-up packet, table by table
//	replaywalks.go  recorded packets, by the entries of now
//	live.go         real packets, as they pass
//	livewatch.go    live traces at several agents
//	dropped.go      dropped packets
//	droppedtext.go  the same as text
//	why.go          may one end reach another: question and answer
//	whynodes.go     several Nodes' answers, put together
//	whytext.go      the answer as text
package api
