package api

import (
	"net/netip"
	"time"
)

// Connection is a tracked connection. Text is its line of ovs-appctl dpctl/dump-conntrack.
type Connection struct {
	Zone      uint16        `json:"zone"`
	Proto     uint8         `json:"proto"`
	Orig      Endpoints     `json:"orig"`
	Reply     Endpoints     `json:"reply"`
	State     string        `json:"state,omitempty"`
	Mark      uint32        `json:"mark,omitempty"`
	Label     string        `json:"label,omitempty"`
	Marks     []string      `json:"marks,omitempty"` // mark and label in words
	TimeoutNS time.Duration `json:"timeoutNS"`
	Offloaded bool          `json:"offloaded,omitempty"` // the kernel forwards packets of it without the switch
	Text      string        `json:"text"`
	// Objects is set if the request asks for it.
	Objects *ConnectionObjects `json:"objects,omitempty"`
}

// Endpoints are the ends of one direction, in the order of its packets. For
// ICMP the ports hold type and code, and ID the identifier.
type Endpoints struct {
	Src     netip.Addr `json:"src"`
	Dst     netip.Addr `json:"dst"`
	SrcPort uint16     `json:"srcPort"`
	DstPort uint16     `json:"dstPort"`
	ID      uint16     `json:"id,omitempty"`
}

// ConnectionObjects are the objects behind a connection.
type ConnectionObjects struct {
	From    string `json:"from,omitempty"`    // the client
	To      string `json:"to,omitempty"`      // the server
	Service string `json:"service,omitempty"` // the Service that the client addressed
	// DecidedBy are the rules that allowed the connection when it began, by direction. Gone are
	// the numbers of such rules that were removed.
	DecidedBy map[string]OriginText `json:"decidedBy,omitempty"`
	Gone      map[string]uint32     `json:"gone,omitempty"`
}

// Flushed is how many connections were removed.
type Flushed struct {
	Flushed int `json:"flushed"`
}

// Counter is one number about the connection table or the exact-match cache. Name is that of
// the metric, without "antrail_". Label, if any, is the zone, port or reason.
type Counter struct {
	Name  string `json:"name"`
	Label string `json:"label,omitempty"`
	Value uint64 `json:"value"`
}

// ConnectionUse is how full the connection table is.
type ConnectionUse struct {
	Now int `json:"now"`
	Max int `json:"max"`
}
