package api

import (
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
)

// LiveTraceRequest selects packets to watch. A packet has to meet all given conditions.
type LiveTraceRequest struct {
	// Source and Destination are Pods, namespace/name. A packet is from a Pod of this Node if
	// it enters by its port, whatever its addresses. A packet is to a Pod if it is addressed to
	// the Pod, or goes to it through a Service.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Pod is the source or the destination.
	Pod         string `json:"pod,omitempty"`
	Port        uint16 `json:"port,omitempty"`   // source or destination port of TCP, UDP or SCTP
	Filter      string `json:"filter,omitempty"` // a tcpdump expression
	DroppedOnly bool   `json:"droppedOnly,omitempty"`
	// Through is a port of the switch, by name or number, where a packet enters or leaves.
	// Where it leaves is known only at the end, so the switch watches every packet that Filter
	// selects.
	Through string `json:"through,omitempty"`
	// Tables are names or numbers of tables. A packet has to enter one of them. The walk has
	// the packet as it is there.
	Tables []string `json:"tables,omitempty"`
	Count  int      `json:"count,omitempty"` // walks until the trace ends; 0 for no limit
	// Begin bounds the walks that begin at this Node; 0 for no limit. Packets from other Nodes
	// with an id of the session are watched beyond it.
	Begin int `json:"begin,omitempty"`
	// WaitMS is how many milliseconds this Node waits before it begins walks. By then the other
	// Nodes watch, too. 0 for one Node.
	WaitMS int `json:"waitMS,omitempty"`
	// For is the duration of the trace in nanoseconds; 0 for no end.
	For time.Duration `json:"forNS,omitempty"`
	// FirstID is the first walk's id, in 16 hexadecimal digits. The first 8 name the session:
	// packets from other Nodes with an id of the session are watched too, and ids leave through
	// the tunnel. Empty: walks end at this Node.
	FirstID string `json:"firstID,omitempty"`
	Text    bool   `json:"text,omitempty"` // each walk also as text, as by ofproto/trace
	// Bytes bounds the packet's bytes at the walk's start, and at each step that keeps them: 1 to MostBytes, or 0 for HeaderBytes. Payload is most of what a walk costs.
	Bytes int `json:"bytes,omitempty"`
}

const (
	// HeaderBytes holds the headers of all but hostile packets.
	HeaderBytes = 256
	// MostBytes is how much of a packet the switch keeps.
	MostBytes = telemetry.SnapLen
)

// LiveLine is a line of the answer.
type LiveLine struct {
	// Armed is the first line: from now on the agent watches packets. It has the tcpdump
	// expressions that select them.
	Armed  *Armed                `json:"armed,omitempty"`
	Walk   *trace.Walk           `json:"walk,omitempty"`
	Counts *telemetry.LiveCounts `json:"counts,omitempty"` // with each walk, at least once a second, and at the end
	// Error says why walks end before the trace does: the switch no longer answers.
	Error string `json:"error,omitempty"`
}

// Armed is what a live trace looks for.
type Armed struct {
	Node   string   `json:"node,omitempty"`
	InPort uint32   `json:"inPort,omitempty"` // 0 for any
	Filter []string `json:"filter"`           // a packet has to match all
	// Pod, Through and Tables are copied from the request.
	Pod     string   `json:"pod,omitempty"`
	Through string   `json:"through,omitempty"`
	Tables  []string `json:"tables,omitempty"`
}
