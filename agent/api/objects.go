package api

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/ledger"
)

// ServiceRecord is a Service, by its key as text; so are the others.
type ServiceRecord struct {
	Object string `json:"object"`
	control.ServiceRow
}

// EndpointsRecord is what serves a Service.
type EndpointsRecord struct {
	Object    string                `json:"object"` // the Service
	Endpoints []control.EndpointRow `json:"endpoints"`
}

// PodRecord is a Pod of the Node.
type PodRecord struct {
	Object string `json:"object"`
	control.PodRow
}

// PolicyRecord is a policy.
type PolicyRecord struct {
	Object string `json:"object"`
	control.PolicyRow
}

// EgressRecord is an Egress.
type EgressRecord struct {
	Object string `json:"object"`
	control.EgressRow
}

// TrafficControlRecord is a TrafficControl.
type TrafficControlRecord struct {
	Object string `json:"object"`
	control.TrafficControlRow
}

// TraceflowRecord is a Traceflow.
type TraceflowRecord struct {
	Object string `json:"object"`
	control.TraceflowRow
}

// NodeRecord is a Node as this one sees it.
type NodeRecord struct {
	control.NodeRow
	// Silent are its addresses that do not answer ARP or NDP, though packets go there.
	Silent []netip.Addr `json:"silent,omitempty"`
	// EditRefused is as in control.Status, of the Node or its NodeConfig.
	EditRefused string `json:"editRefused,omitempty"`
}

// ObjectText is an object in words.
type ObjectText struct {
	Object string `json:"object"`
	Source string `json:"source,omitempty"` // FILE:LINE, or where else it came from
	YAML   string `json:"yaml"`
}

// Explained is an entry, a group or a meter, and what wants it.
type Explained struct {
	Entry   string       `json:"entry,omitempty"` // as dump-flows --names prints it, without counters
	Group   uint32       `json:"group,omitempty"`
	Meter   uint32       `json:"meter,omitempty"`
	Origins []OriginText `json:"origins"`
	// Counters are those of an entry that was found by its cookie, or under a foreign controller.
	Counters *EntryCounters `json:"counters,omitempty"`
}

// EntryCounters are the packets that an entry matched.
type EntryCounters struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// OriginText is an object and the place in it that asks for an entry.
type OriginText struct {
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// String is the object, and the place in it.
func (o OriginText) String() string {
	s := strings.TrimSpace(o.Object + " " + o.Field)
	if o.Rule != "" {
		s += fmt.Sprintf(" (%s)", o.Rule)
	}
	return s
}

// CookieRecord is a cookie with what its entries have counted, where entries have no objects.
type CookieRecord struct {
	Object  string `json:"object"` // cookie=0x…
	Tables  int    `json:"tables"`
	Entries int    `json:"entries"`
	EntryCounters
}

// ObjectEntries is an object with the entries, groups and meters that it wants, or a cookie with
// the entries that have it.
type ObjectEntries struct {
	Object string       `json:"object"`
	State  ledger.State `json:"state"`
	Reason string       `json:"reason,omitempty"`
	// EditRefused is as in control.Status.
	EditRefused string      `json:"editRefused,omitempty"`
	Entries     []Explained `json:"entries"`
	Groups      []string    `json:"groups,omitempty"` // as dump-groups --names prints them
	Meters      []string    `json:"meters,omitempty"`
}
