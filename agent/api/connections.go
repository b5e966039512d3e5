package api

import (
	"net/netip"
	"time"
)

// Connection is a tracked connection. Text is the line of
// ovs-appctl dpctl/dump-conntrack.
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
	Offloaded bool          `json:"offloaded,omitempty"` // the kernel forwards packets of it by itself
	Text      string        `json:"text"`
	// Objects is there when it is asked for.
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
	From    string `json:"from,omitempty"`    // who began it
	To      string `json:"to,omitempty"`      // who serves it
	Service string `json:"service,omitempty"` // that was asked for
	// DecidedBy are the rules that allowed it when it began, by direction; Gone those
	// whose rule has been removed.
	DecidedBy map[string]OriginText `json:"decidedBy,omitempty"`
	Gone      map[string]uint32     `json:"gone,omitempty"`
}

// Flushed is how many connections were removed.
type Flushed struct {
	Flushed int `json:"flushed"`
}

// Counter is one number about the connection table, under the name that the
// metrics have after "antrail_", or about the exact-match cache. Label, where
// there is one, is which of several: a zone, a port, a reason.
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
