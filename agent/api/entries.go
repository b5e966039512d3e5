package api

import "time"

// Flow is an installed flow entry.
type Flow struct {
	Table    string `json:"table"`
	TableID  uint8  `json:"tableID"`
	Priority uint16 `json:"priority"`
	Cookie   string `json:"cookie,omitempty"`
	Match    string `json:"match"`
	Actions  string `json:"actions"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
	Learned  bool   `json:"learned,omitempty"`
	// Asks and Sets name the registers and marks that the match examines and the actions set.
	Asks []string `json:"asks,omitempty"`
	Sets []string `json:"sets,omitempty"`
	// Origins are set if the request asks for them, as in the types below.
	Origins []OriginText `json:"origins,omitempty"`
	// DurationNS is the time since installation, IdleNS since the last packet.
	DurationNS time.Duration `json:"durationNS"`
	IdleNS     time.Duration `json:"idleNS"`
}

// Table is a table with its counters.
type Table struct {
	ID      uint8  `json:"id"`
	Name    string `json:"name"`
	Shape   string `json:"shape"` // of the lookup: how the table is compiled
	Entries int    `json:"entries"`
	Learned int    `json:"learned"`
	Masks   int    `json:"masks"`
	Lookups uint64 `json:"lookups"`
	Matched uint64 `json:"matched"`
	// LookupNS is the mean time of a lookup, ActionsNS the mean time of its actions until the
	// next lookup. Both are 0 until one was timed.
	LookupNS  time.Duration     `json:"lookupNS"`
	ActionsNS time.Duration     `json:"actionsNS"`
	Drops     map[string]uint64 `json:"drops,omitempty"` // by reason
}

// Drop counts packets whose walk ended in a table for a reason.
type Drop struct {
	Table   string `json:"table"`
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	Packets uint64 `json:"packets"`
}

// Group is a group with its counters. Buckets are in the group's order.
type Group struct {
	ID      uint32   `json:"id"`
	Text    string   `json:"text"`
	Packets uint64   `json:"packets"`
	Bytes   uint64   `json:"bytes"`
	Buckets []Counts `json:"buckets"`

	Origins []OriginText `json:"origins,omitempty"`
}

// Meter is a meter with its counters. Dropped is by band.
type Meter struct {
	ID      uint32   `json:"id"`
	Text    string   `json:"text"`
	Packets uint64   `json:"packets"`
	Bytes   uint64   `json:"bytes"`
	Dropped []uint64 `json:"dropped"`

	Origins []OriginText `json:"origins,omitempty"`
}

// LearnedMAC is a row of the MAC table of action NORMAL.
type LearnedMAC struct {
	Port  uint32        `json:"port"`
	VLAN  uint16        `json:"vlan"`
	MAC   string        `json:"mac"`
	AgeNS time.Duration `json:"ageNS"`
}

// Counts are the counters of one direction of a port.
type Counts struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Dropped uint64 `json:"dropped"`
	Errors  uint64 `json:"errors"`
}
