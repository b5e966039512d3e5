package telemetry

import "github.com/antrail/antrail/flow"

// PacketIn is a packet that a flow entry sent to the controller.
type PacketIn struct {
	InPort   uint32      `json:"inPort"`
	Table    uint8       `json:"table"`
	Reason   string      `json:"reason"` // no_match, action, invalid_ttl
	UserData []byte      `json:"userData,omitzero"`
	Key      flow.Key    `json:"key"`
	Entry    *flow.Entry `json:"-"`              // the entry that sent it; see wirePacketIn
	CT       DroppedCT   `json:"ct,omitzero"`    // conntrack's state of it
	Length   int         `json:"length"`         // of the whole packet
	Frame    []byte      `json:"frame,omitzero"` // the packet at the action
	Rests    []Rest      `json:"rests,omitzero"` // the actions after a pause, the innermost list first
}

// Rest is a list of actions left after a pause, with the table and the cookie of its entry.
type Rest struct {
	Table   uint8
	Cookie  uint64
	Actions []flow.Action
}

// Paused is a paused packet that its controller sends back. Fields are the registers, marks and
// other fields outside headers, except in_port.
type Paused struct {
	InPort uint32     `json:"inPort"`
	Fields flow.Match `json:"fields"`
	Rests  []Rest     `json:"rests"`
	Frame  []byte     `json:"frame"`
}

// FlowRemoved is an entry removed by a timeout, with its last counters.
type FlowRemoved struct {
	Flow FlowStats `json:"flow"`
	Hard bool      `json:"hard,omitempty"` // by the hard timeout, not by the idle one
}
