package agent

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
)

// The answers of the API as JSON (?format=json, -o json). Numbers of packets,
// bytes and nanoseconds are plain numbers; matches and actions are the text
// that dumps print.

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
	// Asks and Sets are what the match and the actions have of registers and marks, by
	// their names.
	Asks []string `json:"asks,omitempty"`
	Sets []string `json:"sets,omitempty"`
	// Origins are there when they are asked for; so in the records below.
	Origins []OriginText `json:"origins,omitempty"`
	// DurationNS is since installation, IdleNS since the last packet.
	DurationNS time.Duration `json:"durationNS"`
	IdleNS     time.Duration `json:"idleNS"`
}

// Table is a table with its counters.
type Table struct {
	ID      uint8  `json:"id"`
	Name    string `json:"name"`
	Shape   string `json:"shape"` // of the lookup
	Entries int    `json:"entries"`
	Learned int    `json:"learned"`
	Masks   int    `json:"masks"`
	Lookups uint64 `json:"lookups"`
	Matched uint64 `json:"matched"`
	// LookupNS is the mean time of a lookup, and ActionsNS of what its entry does
	// until the next one; 0 until one was timed.
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

// PortRecord is a port with its counters.
type PortRecord struct {
	No      uint32            `json:"ofPort"`
	Name    string            `json:"name"`
	Pod     string            `json:"pod,omitempty"` // namespace/name
	Link    string            `json:"link"`
	MAC     string            `json:"mac"`
	MTU     int               `json:"mtu"`
	Up      bool              `json:"up"`
	Missing string            `json:"missing,omitempty"` // why the port is wanted and not in the switch
	Driver  string            `json:"driver"`
	Mode    string            `json:"mode"`
	Why     string            `json:"why,omitempty"`
	Worker  int               `json:"worker"` // that receives from it
	Load    float64           `json:"load"`   // part of the worker's time, lately: 0 to 1
	Rx      Counts            `json:"rx"`
	Tx      Counts            `json:"tx"`
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	MACs    PortMACs          `json:"macs"`
	Offload PortOffload       `json:"offload"`
}

// PortMACs are the MAC addresses that NORMAL learned at a port. NotLearned counts the
// frames whose source it did not learn, by macShareFull or macElsewhere.
type PortMACs struct {
	Learned    int               `json:"learned"`
	NotLearned map[string]uint64 `json:"notLearned,omitempty"`
}

// Why NORMAL does not learn the source of a frame.
const (
	macShareFull = "share full"
	macElsewhere = "configured on another port"
)

func portMACs(s dataplane.MACStats) PortMACs {
	m := PortMACs{s.Learned, map[string]uint64{macShareFull: s.Full, macElsewhere: s.Foreign}}
	maps.DeleteFunc(m.NotLearned, func(_ string, n uint64) bool { return n == 0 })
	return m
}

// Counts are one direction of a port.
type Counts struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Dropped uint64 `json:"dropped"`
	Errors  uint64 `json:"errors"`
}

// WorkerRecord is a thread that moves packets.
type WorkerRecord struct {
	No      int      `json:"worker"`
	OFPorts []uint32 `json:"ofPorts"` // that it receives from
	Blind   int      `json:"blind"`   // how many of them are asked every millisecond, for the kernel does not announce their frames
	Batches uint64   `json:"batches"`
	Packets uint64   `json:"packets"`
	Load    float64  `json:"load"` // part of its time that packets took lately: 0 to 1
	// The times are since the agent's start.
	WorkingNS   time.Duration `json:"workingNS"`
	SpinningNS  time.Duration `json:"spinningNS"`
	AsleepNS    time.Duration `json:"asleepNS"`
	Sleeps      uint64        `json:"sleeps"`
	KeptAwakeNS time.Duration `json:"keptAwakeNS"`     // idle processors, while pods talked
	Wakes       []WakeCount   `json:"wakes,omitempty"` // called in its sleep, how soon it ran
}

// WakeCount is how many wake-ups took less than so many microseconds, and no
// less than half of it. The last one, of 32768, is for all longer ones too.
type WakeCount struct {
	BelowUS int    `json:"belowUS"`
	Count   uint64 `json:"count"`
}

// Group is a group with its counters; Buckets is in the group's order.
type Group struct {
	ID      uint32   `json:"id"`
	Text    string   `json:"text"`
	Packets uint64   `json:"packets"`
	Bytes   uint64   `json:"bytes"`
	Buckets []Counts `json:"buckets"`

	Origins []OriginText `json:"origins,omitempty"`
}

// Meter is a meter with its counters; Dropped is by band.
type Meter struct {
	ID      uint32   `json:"id"`
	Text    string   `json:"text"`
	Packets uint64   `json:"packets"`
	Bytes   uint64   `json:"bytes"`
	Dropped []uint64 `json:"dropped"`

	Origins []OriginText `json:"origins,omitempty"`
}

// LearnedMAC is a row of the MAC table that NORMAL keeps.
type LearnedMAC struct {
	Port  uint32        `json:"port"`
	VLAN  uint16        `json:"vlan"`
	MAC   string        `json:"mac"`
	AgeNS time.Duration `json:"ageNS"`
}

// tableName is the name of a table, or its number.
func (p *pipeline) tableName(id uint8) string {
	if name := p.sw.Names().Table(id); name != "" {
		return name
	}
	return strconv.Itoa(int(id))
}

func (p *pipeline) tableRecords() []Table {
	var all []Table
	for _, t := range p.sw.Tables() {
		r := Table{
			ID: t.ID, Name: p.tableName(t.ID), Shape: string(t.Shape), Entries: t.Entries, Learned: t.Learned, Masks: t.Masks,
			Lookups: t.Lookups, Matched: t.Hits, LookupNS: t.Times.MeanLookup(), ActionsNS: t.Times.MeanActions(), Drops: map[string]uint64{},
		}
		for reason, n := range t.DropsByReason {
			r.Drops[reason.String()] = n
		}
		all = append(all, r)
	}
	return all
}

func (p *pipeline) dropRecords() []Drop {
	all := []Drop{}
	for _, t := range p.sw.Tables() {
		for _, reason := range slices.Sorted(maps.Keys(t.DropsByReason)) {
			all = append(all, Drop{p.tableName(t.ID), reason.String(), reason.Sentence(), t.DropsByReason[reason]})
		}
	}
	return all
}

// portRecords are the switch's ports, and behind them those that are wanted and whose
// links are not there.
func (p *pipeline) portRecords() []PortRecord {
	var all []PortRecord
	names := p.sw.Names()
	for _, s := range p.portStats() {
		r := PortRecord{
			No: s.No, Name: names.Port(s.No), Link: s.Name, MAC: net.HardwareAddr(s.MAC[:]).String(), MTU: s.MTU,
			Up: s.Up, Driver: s.Driver, Mode: s.Mode, Why: s.Why, Reasons: s.Reasons, Worker: s.Worker, Load: s.Load,
			Rx: Counts{s.RxPackets, s.RxBytes, s.RxDropped, s.RxErrors},
			Tx: Counts{s.TxPackets, s.TxBytes, s.TxDropped, s.TxErrors}, MACs: portMACs(s.MACs), Offload: p.portOffload(&s),
		}
		if r.Name == "" {
			r.Name = s.Name
		}
		r.Pod = p.podAt(s.No)
		all = append(all, r)
	}
	return append(all, p.missingRecords()...)
}

// portsAsked is all ports, or those of a name, number, link or Pod: a Pod may have
// several.
func (p *pipeline) portsAsked(q query) ([]PortRecord, error) {
	all := p.portRecords()
	if q.port == "" {
		return all, nil
	}
	var there []string
	for _, r := range all {
		there = append(there, r.Name)
	}
	all = slices.DeleteFunc(all, func(r PortRecord) bool {
		return !slices.Contains([]string{r.Name, strconv.Itoa(int(r.No)), r.Link, r.Pod}, q.port)
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no port %q%s; there are %s", q.port, flow.Suggest(q.port, there), strings.Join(there, ", "))
	}
	return all, nil
}

// podAt is the Pod at a port, as namespace/name; "" for none.
func (p *pipeline) podAt(port uint32) string {
	if p.objects == nil {
		return ""
	}
	pod, ok := p.objects.PodAt(port)
	if !ok {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}

func (p *pipeline) workerRecords() []WorkerRecord {
	var all []WorkerRecord
	for _, s := range p.sw.Workers() {
		r := WorkerRecord{
			No: s.No, OFPorts: s.Ports, Blind: s.Blind, Batches: s.Batches, Packets: s.Packets, Load: s.Load,
			WorkingNS: s.Working, SpinningNS: s.Spinning, AsleepNS: s.Asleep, Sleeps: s.Sleeps, KeptAwakeNS: s.KeptAwake,
		}
		for i, n := range s.Wakes {
			if n > 0 {
				r.Wakes = append(r.Wakes, WakeCount{1 << i, n})
			}
		}
		all = append(all, r)
	}
	return all
}

func (p *pipeline) groupRecords(q query) []Group {
	var all []Group
	for _, g := range p.sw.Groups() {
		r := Group{ID: g.ID, Text: g.Text(p.sw.Names()), Packets: g.Packets, Bytes: g.Bytes, Origins: p.groupOrigins(q, g.ID)}
		for _, b := range g.Buckets {
			r.Buckets = append(r.Buckets, Counts{Packets: b.Packets, Bytes: b.Bytes})
		}
		all = append(all, r)
	}
	return all
}

func (p *pipeline) meterRecords(q query) []Meter {
	var all []Meter
	for _, m := range p.sw.Meters() {
		all = append(all, Meter{m.ID, m.Text(), m.Packets, m.Bytes, m.Dropped, p.meterOrigins(q, m.ID)})
	}
	return all
}

func (p *pipeline) macRecords() []LearnedMAC {
	all := []LearnedMAC{}
	for _, m := range p.sw.LearnedMACs() {
		all = append(all, LearnedMAC{m.Port, m.VLAN, net.HardwareAddr(m.MAC[:]).String(), time.Duration(m.Age)})
	}
	return all
}
