package api

import "github.com/antrail/antrail/trace"

// TraceRequest asks for the walk of one packet.
type TraceRequest struct {
	// Flow describes the packet as a match does: in_port and headers, and what
	// it carries of registers, marks and tunnel fields. What it leaves out of
	// nw_ttl, tp_src, tcp_flags and icmp_type is as in the first packet of a
	// connection: 64, 40000, syn, echo request.
	Flow string `json:"flow"`
	// Packet is the frame in hexadecimal, in place of the headers in Flow.
	Packet string `json:"packet,omitempty"`
	// CTNext answers ct() actions one after the other, each a list of ct_state
	// words: "trk,new"; then trk,new. When empty, connections are looked up.
	CTNext []string `json:"ctNext,omitempty"`
	// CT answers the first ct() actions as they were answered once.
	CT []TraceCT `json:"ct,omitempty"`
	// Undone is work that the frame's sender left to do.
	Undone *trace.Undone `json:"undone,omitempty"`
}

// TraceCT is what a ct() action answered once.
type TraceCT struct {
	State string `json:"state"` // words of ct_state
	Mark  uint32 `json:"mark,omitempty"`
	Label string `json:"label,omitempty"` // as ct_label
	// Source and Destination are the packet's ends as NAT left them, with their ports
	// if it has any; empty where it did nothing.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
}

// TraceAnswer is a trace as JSON.
type TraceAnswer struct {
	Verdict  string   `json:"verdict"`
	Outputs  []uint32 `json:"outputs"`
	PacketIn bool     `json:"packetIn,omitempty"`
	Waits    bool     `json:"waits,omitempty"`  // a fragment that waits for the rest of its datagram
	Reason   string   `json:"reason,omitempty"` // of a drop
	Table    string   `json:"table,omitempty"`  // where it was dropped or waits
	Text     string   `json:"text"`
	// Entries are those that the tables gave, in order.
	Entries []TraceEntry `json:"entries"`
	// Walk is the whole way, step by step, with the objects behind entries.
	Walk *trace.Walk `json:"walk"`
}

// TraceEntry is an entry that a packet met; Match and Actions are empty, and the
// priority is 0, where no entry matched.
type TraceEntry struct {
	Table    string `json:"table"`
	Priority uint16 `json:"priority"`
	Match    string `json:"match"`
	Actions  string `json:"actions"`
	// Objects want the entry; none are known of flow files.
	Objects []OriginText `json:"objects,omitempty"`
}
