// Package openflow encodes and decodes the messages between controllers or ovs-ofctl and a
// switch. It has OpenFlow 1.0, 1.3, 1.4 and 1.5, with the extensions of Nicira (Open vSwitch) and
// ONF (bundles in 1.3). Entries, matches, actions, groups and meters are those of package flow.
//
//	m, err := openflow.Decode(bytes)      // a request, or the error for the peer
//	b, err := openflow.Encode(openflow.Message{Version: m.Version, XID: m.XID, Body: &openflow.BarrierReply{}})
//
// A switch decodes requests and encodes answers, so most bodies have one direction.
//
//	wire.go                    versions; bytes read and written
//	message.go, hello.go       headers and types; how versions are agreed on, echo and barrier
//	errorcodes.go              errors, and their numbers in each version
//	experimenter.go            messages of Nicira and ONF
//	tlvtable.go                options of Geneve with a number
//	fieldheaders.go            numbers of fields, beside the registry of package flow
//	match.go, match10.go       matches of fields; the fixed match of OpenFlow 1.0
//	actiondecode.go, nicira.go actions read: OpenFlow's own; Nicira's
//	nxct.go, learn.go          actions with parts, both directions
//	actionencode.go            actions written
//	instruction.go             the instructions of entries in OpenFlow 1.3 and later
//	flowmod.go, flowstats.go   changes of entries; entries with counters
//	multipart.go               multipart requests, and replies in pages of 64 kB
//	tablestats.go              tables with counters
//	portmessages.go            ports with counters, and ports that come, go and change
//	group.go, meter.go         groups and meters
//	bundlemessages.go          bundles
//	packetmessages.go          packet-outs and packet-ins
//	flowremoved.go             removed entries
//	flowmonitor.go             changes of entries that a controller watches
//	asyncconfig.go             which asynchronous messages a controller gets
//	continuation.go            paused packets that a controller returns
//	switchmessages.go          description and configuration of the switch; roles
//
// Decoders trust no length: a message has at most 64 kB, and actions nest at most 8 levels deep.
// Unsupported parts are an *Error with OpenFlow's type and code. All decoders are fuzzed. In the
// tests, ovs-ofctl of Open vSwitch 3.1 reads the encoded messages, and its own messages are
// decoded.
package openflow
