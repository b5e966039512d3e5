package api

import "github.com/antrail/antrail/trace"

// TraceRequest asks for the walk of one packet.
type TraceRequest struct {
	// Flow describes the packet as a match does: in_port, headers, registers, marks and tunnel
	// fields. Without nw_ttl, tp_src, tcp_flags and icmp_type, the packet has those of a
	// connection's first packet: 64, 40000, syn, echo request.
	Flow string `json:"flow"`
	// Packet is the frame in hexadecimal, in place of the headers in Flow.
	Packet string `json:"packet,omitempty"`
	// CTNext has the answers of ct() actions in their order, each a list of ct_state words.
	// After the last, the answer is "trk,new". If CTNext is empty, connections are looked up.
	CTNext []string `json:"ctNext,omitempty"`
	// CT has recorded answers of the first ct() actions.
	CT []TraceCT `json:"ct,omitempty"`
	// Undone is work that the frame's sender left to the receiver: checksum and segmentation.
	Undone *trace.Undone `json:"undone,omitempty"`
}

// TraceCT is a recorded answer of a ct() action.
type TraceCT struct {
	State string `json:"state"` // words of ct_state
	Mark  uint32 `json:"mark,omitempty"`
	Label string `json:"label,omitempty"` // as ct_label
	// Source and Destination are the packet's ends after NAT, with their ports if it has any.
	// An end that NAT did not change is empty.
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
	// Entries are the entries of the walk, in order.
	Entries []TraceEntry `json:"entries"`
	// Walk is the complete walk, step by step, with the objects behind entries.
	Walk *trace.Walk `json:"walk"`
}

// TraceEntry is an entry of a walk. Without a matching entry, Match and Actions are empty and
// Priority is 0.
type TraceEntry struct {
	Table    string `json:"table"`
	Priority uint16 `json:"priority"`
	Match    string `json:"match"`
	Actions  string `json:"actions"`
	// Objects are the objects that ask for the entry; none if it comes from a flow file.
	Objects []OriginText `json:"objects,omitempty"`
}
