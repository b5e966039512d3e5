// Package ofserver serves OpenFlow to controllers and to ovs-ofctl. Their requests drive a switch
// behind a door (package door).
//
//	controllers ── sockets ── connection ── stage ── one bundle ── door
//
//	listener.go     listeners, and which peers are admitted
//	requestloop.go  one connection: versions, then request after request
//	requests.go     the requests
//	flowbatch.go    flow mods that come in a row
//	bundles.go      bundles: changes that wait for their commit
//	bundledentries.go  the messages of a bundle, and the text of entries that it adds
//	listings.go     answers to multipart requests
//	asynchronous.go packet-ins, removed entries, and roles
//	flowmonitors.go flow monitors of a connection, and their updates
//	flowwatch.go    the entries with which flow monitors compare
//	updatequeue.go  updates until they are written; pauses
//	portstatus.go   settings of ports, and ports that come and go
//	connection.go   server and connections; messages written; changes, one at a time
//	groupmods.go    groups and meters on a stage
//	flowmods.go     entries on a stage: added, modified and deleted
//	tlvtable.go     options of Geneve that controllers give numbers
//	holding.go      packets dropped while a controller installs its entries
//	staging.go      a stage: changes that are not applied yet, on top of the switch's entries
//	doorlists.go    the switch's lists, and whether it answered
//
// A controller is not trusted:
//
//  1. A connection holds at most maxBundleBytes of bundles, one request, and one answer page.
//     Packet-ins that it does not read are lost beyond maxPending. Its flow monitors pause.
//  2. A peer that does not read for writeTime loses its connection. Only the goroutine of its
//     own connection waits for it, and that one holds no lock meanwhile.
//  3. Changes run one after the other under one lock. Each is one bundle of the door, so a
//     packet sees the entries before the change or after it.
//  4. If the switch does not list its entries, a change that needs them is refused.
package ofserver
