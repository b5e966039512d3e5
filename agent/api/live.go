package api

import (
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
)

// LiveTraceRequest says which packets to watch. Everything that is given has to
// hold.
type LiveTraceRequest struct {
	// Source and Destination are Pods, namespace/name. A packet from a Pod of this
	// Node is one that enters by its port, whatever its addresses say. A packet to a
	// Pod is addressed to it, or to a Service that it may serve; one that went to
	// another endpoint is left out.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Pod is either of both: packets from it and packets to it.
	Pod         string `json:"pod,omitempty"`
	Port        uint16 `json:"port,omitempty"`   // either one, of TCP, UDP or SCTP
	Filter      string `json:"filter,omitempty"` // a tcpdump expression
	DroppedOnly bool   `json:"droppedOnly,omitempty"`
	// Through is a port of the switch, by name or number, by which a packet enters or
	// leaves. Whether it leaves there is known at its end: every packet is watched
	// that Filter does not leave out.
	Through string `json:"through,omitempty"`
	// Tables are names or numbers of tables, one of which a packet enters; the walk has
	// the packet as it is there.
	Tables []string `json:"tables,omitempty"`
	Count  int      `json:"count,omitempty"` // walks until the end; 0 for no end
	// Begin is how many walks may begin at this Node; 0 for no end. Packets from other
	// Nodes with an id of the session are watched beyond it.
	Begin int `json:"begin,omitempty"`
	// WaitMS is how many milliseconds no walk begins at this Node, so that the others
	// watch by then what it begins; 0 for one Node.
	WaitMS int `json:"waitMS,omitempty"`
	// For is how long the trace lasts, in nanoseconds; 0 for no end.
	For time.Duration `json:"forNS,omitempty"`
	// FirstID numbers the walks, in hexadecimal. Of its 16 digits the first 8 name
	// the session: packets that come from another Node with an id of it are watched,
	// too, and ids leave through the tunnel. Empty: walks are this Node's alone.
	FirstID string `json:"firstID,omitempty"`
	Text    bool   `json:"text,omitempty"` // each walk also in the manner of ofproto/trace
	// Bytes is how many bytes of the packet a walk has at most, as it entered and at
	// each step that keeps it: 1 to MostBytes, or 0 for HeaderBytes. Where many packets
	// are watched, their payload is most of what a walk costs.
	Bytes int `json:"bytes,omitempty"`
}

const (
	// HeaderBytes is more than the headers of packets have that are not hostile.
	HeaderBytes = 256
	// MostBytes is as much as the switch keeps of a packet.
	MostBytes = telemetry.SnapLen
)

// LiveLine is a line of the answer.
type LiveLine struct {
	// Armed comes first: from now on packets are watched. It is the tcpdump
	// expressions that they have to meet.
	Armed  *Armed                `json:"armed,omitempty"`
	Walk   *trace.Walk           `json:"walk,omitempty"`
	Counts *telemetry.LiveCounts `json:"counts,omitempty"` // with each walk, at least once a second, and last of all
	// Error says why walks end before the trace does: the switch does not answer any more.
	Error string `json:"error,omitempty"`
}

// Armed is what a live trace looks for.
type Armed struct {
	Node   string   `json:"node,omitempty"`
	InPort uint32   `json:"inPort,omitempty"` // 0 for any
	Filter []string `json:"filter"`           // all have to hold
	// Pod, Through and Tables are the request's.
	Pod     string   `json:"pod,omitempty"`
	Through string   `json:"through,omitempty"`
	Tables  []string `json:"tables,omitempty"`
}
