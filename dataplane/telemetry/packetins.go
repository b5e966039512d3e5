package telemetry

import "github.com/antrail/antrail/flow"

// PacketIn is a packet that a flow entry sent to the controller.
type PacketIn struct {
	InPort   uint32      `json:"inPort"`
	Table    uint8       `json:"table"`
	Reason   string      `json:"reason"` // no_match, action, invalid_ttl
	UserData []byte      `json:"userData,omitzero"`
	Key      flow.Key    `json:"key"`
	Entry    *flow.Entry `json:"-"`              // that sent it; see wirePacketIn
	CT       DroppedCT   `json:"ct,omitzero"`    // what conntrack had said of it
	Length   int         `json:"length"`         // of all of it
	Frame    []byte      `json:"frame,omitzero"` // the packet as it was at the action
	Rests    []Rest      `json:"rests,omitzero"` // what a pause has left, the innermost list first
}

// Rest is a list of actions that a pause has left undone, with the table and the cookie of its entry.
type Rest struct {
	Table   uint8
	Cookie  uint64
	Actions []flow.Action
}

// Paused is a packet that an entry has paused, as its controller gives it back. Fields are
// the registers, marks and other fields that no header has, but for in_port.
type Paused struct {
	InPort uint32     `json:"inPort"`
	Fields flow.Match `json:"fields"`
	Rests  []Rest     `json:"rests"`
	Frame  []byte     `json:"frame"`
}

// FlowRemoved is an entry that is gone because a timeout has passed, with its last counters.
type FlowRemoved struct {
	Flow FlowStats `json:"flow"`
	Hard bool      `json:"hard,omitempty"` // the hard timeout, not that of idleness
}
