package answer

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/flow"
)

// Answers as JSON (?format=json, -o json). Counters and times in nanoseconds are plain numbers.
// Matches and actions are the text that dumps print.

func (p *Answers) tableRecords() []api.Table {
	var all []api.Table
	for _, t := range p.Switch.Tables() {
		r := api.Table{
			ID: t.ID, Name: p.TableName(t.ID), Shape: string(t.Shape), Entries: t.Entries, Learned: t.Learned, Masks: t.Masks,
			Lookups: t.Lookups, Matched: t.Hits, LookupNS: t.Times.MeanLookup(), ActionsNS: t.Times.MeanActions(), Drops: map[string]uint64{},
		}
		for reason, n := range t.DropsByReason {
			r.Drops[reason.String()] = n
		}
		all = append(all, r)
	}
	return all
}

func (p *Answers) dropRecords() []api.Drop {
	all := []api.Drop{}
	for _, t := range p.Switch.Tables() {
		for _, reason := range slices.Sorted(maps.Keys(t.DropsByReason)) {
			all = append(all, api.Drop{Table: p.TableName(t.ID), Reason: reason.String(), Meaning: reason.Sentence(), Packets: t.DropsByReason[reason]})
		}
	}
	return all
}

// requestedPorts are all ports, or those with a name, number, link or Pod. A Pod may have
// several.
func (p *Answers) requestedPorts(q query) ([]api.PortRecord, error) {
	all := p.PortRecords()
	if q.port == "" {
		return all, nil
	}
	var there []string
	for _, r := range all {
		there = append(there, r.Name)
	}
	all = slices.DeleteFunc(all, func(r api.PortRecord) bool {
		return !slices.Contains([]string{r.Name, strconv.Itoa(int(r.No)), r.Link, r.Pod}, q.port)
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no port %q%s; there are %s", q.port, flow.Suggest(q.port, there), strings.Join(there, ", "))
	}
	return all, nil
}

func (p *Answers) workerRecords() []api.WorkerRecord {
	var all []api.WorkerRecord
	for _, s := range p.Switch.Workers() {
		r := api.WorkerRecord{
			No: s.No, OFPorts: s.Ports, Blind: s.Blind, Batches: s.Batches, Packets: s.Packets, Load: s.Load,
			WorkingNS: s.Working, SpinningNS: s.Spinning, AsleepNS: s.Asleep, Sleeps: s.Sleeps, KeptAwakeNS: s.KeptAwake,
		}
		for i, n := range s.Wakes {
			if n > 0 {
				r.Wakes = append(r.Wakes, api.WakeCount{BelowUS: 1 << i, Count: n})
			}
		}
		all = append(all, r)
	}
	return all
}

func (p *Answers) groupRecords(q query) []api.Group {
	var all []api.Group
	for _, g := range p.Switch.Groups() {
		r := api.Group{ID: g.ID, Text: g.Text(p.Switch.Names()), Packets: g.Packets, Bytes: g.Bytes, Origins: p.groupOrigins(q, g.ID)}
		for _, b := range g.Buckets {
			r.Buckets = append(r.Buckets, api.Counts{Packets: b.Packets, Bytes: b.Bytes})
		}
		all = append(all, r)
	}
	return all
}

func (p *Answers) meterRecords(q query) []api.Meter {
	var all []api.Meter
	for _, m := range p.Switch.Meters() {
		all = append(all, api.Meter{ID: m.ID, Text: m.Text(), Packets: m.Packets, Bytes: m.Bytes, Dropped: m.Dropped, Origins: p.meterOrigins(q, m.ID)})
	}
	return all
}

func (p *Answers) macRecords() []api.LearnedMAC {
	all := []api.LearnedMAC{}
	for _, m := range p.Switch.LearnedMACs() {
		all = append(all, api.LearnedMAC{Port: m.Port, VLAN: m.VLAN, MAC: net.HardwareAddr(m.MAC[:]).String(), AgeNS: time.Duration(m.Age)})
	}
	return all
}
