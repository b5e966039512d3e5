package api

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// EndpointsRecord has the endpoints of a Service.
type EndpointsRecord struct {
	Service   cluster.Key           `json:"-"`
	Object    string                `json:"object"` // Service as text
	Endpoints []control.EndpointRow `json:"endpoints"`
}

// NodeRecord is a Node as this Node sees it.
type NodeRecord struct {
	control.NodeRow
	// Silent are addresses of the Node that do not answer ARP or NDP although packets go there.
	Silent []netip.Addr `json:"silent,omitempty"`
	// EditRefused is that of the Node or its NodeConfig, as in control.Status.
	EditRefused string `json:"editRefused,omitempty"`
}

// ObjectText is an object as text.
type ObjectText struct {
	Object string `json:"object"`
	Source string `json:"source,omitempty"` // FILE:LINE, or another source
	YAML   string `json:"yaml"`
}

// Explained is an entry, group or meter, with the objects that ask for it.
type Explained struct {
	Entry   string       `json:"entry,omitempty"` // as by dump-flows --names, without counters
	Group   uint32       `json:"group,omitempty"`
	Meter   uint32       `json:"meter,omitempty"`
	Origins []OriginText `json:"origins"`
	// Counters are set if the entry was found by its cookie, or belongs to a foreign
	// controller.
	Counters *EntryCounters `json:"counters,omitempty"`
}

// EntryCounters count the packets that an entry matched.
type EntryCounters struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// OriginText is an object, and the field in it that asks for an entry.
type OriginText struct {
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// String is the object, its field and its rule.
func (o OriginText) String() string {
	s := strings.TrimSpace(o.Object + " " + o.Field)
	if o.Rule != "" {
		s += fmt.Sprintf(" (%s)", o.Rule)
	}
	return s
}

// CookieRecord is a cookie with the counters of its entries. It stands for objects where
// entries have none.
type CookieRecord struct {
	Object  string `json:"object"` // cookie=0x…
	Tables  int    `json:"tables"`
	Entries int    `json:"entries"`
	EntryCounters
}

// ObjectEntries is an object with its entries, groups and meters, or a cookie with its entries.
type ObjectEntries struct {
	Object string       `json:"object"`
	State  ledger.State `json:"state"`
	Reason string       `json:"reason,omitempty"`
	// EditRefused is as in control.Status.
	EditRefused string      `json:"editRefused,omitempty"`
	Entries     []Explained `json:"entries"`
	Groups      []string    `json:"groups,omitempty"` // as by dump-groups --names
	Meters      []string    `json:"meters,omitempty"`
}
