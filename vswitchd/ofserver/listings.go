package ofserver

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// answerMultipart answers a multipart request, page by page. Each page is made when it is written,
// so only one is in memory for a peer that does not read.
func (c *connection) answerMultipart(xid uint32, q *openflow.Request) error {
	parts, err := c.replyParts(q)
	if err != nil {
		return err
	}
	return c.writePages(xid, q, parts)
}

// writePages writes parts, page by page.
func (c *connection) writePages(xid uint32, q *openflow.Request, parts iter.Seq[openflow.Part]) error {
	for b, err := range openflow.Pages(c.version, xid, q, parts) {
		if wrong, ok := errors.AsType[*openflow.Error](err); ok {
			return wrong
		}
		if err != nil {
			return err
		}
		if err := c.write(b); err != nil {
			return err
		}
	}
	return nil
}

// replyParts are the parts of the answer to a request.
func (c *connection) replyParts(q *openflow.Request) (iter.Seq[openflow.Part], error) {
	s := c.s
	switch q.Kind {
	case openflow.StatsDesc:
		return one(&openflow.Desc{
			Manufacturer: "antrail", Hardware: "antrail", Software: s.Release, Serial: "None", Datapath: s.Bridge,
		}), nil
	case openflow.StatsFlow:
		return s.flows(&q.Flows)
	case openflow.StatsAggregate:
		return s.aggregate(&q.Flows)
	case openflow.StatsTable:
		return s.tables()
	case openflow.StatsPort:
		return s.portStats(q.Port)
	case openflow.StatsPortDesc:
		return s.portDescs(q.Port)
	case openflow.StatsQueue, openflow.StatsQueueDesc:
		return none(), c.queueParts(q)
	case openflow.StatsGroup:
		return s.groupStats(q.Group)
	case openflow.StatsGroupDesc:
		return s.groupDescs(q.Group)
	case openflow.StatsGroupFeatures:
		return one(&openflow.GroupFeatures{}), nil
	case openflow.StatsMeter:
		return s.meterStats(q.Meter)
	case openflow.StatsMeterConfig:
		return s.meterConfigs(q.Meter)
	case openflow.StatsMeterFeatures:
		return one(&openflow.MeterFeatures{}), nil
	case openflow.StatsTableFeatures:
		return c.tableFeatures(q)
	case openflow.StatsTableDesc:
		return eachTable(func(id uint8) openflow.Part { return &openflow.TableDesc{ID: id} }), nil
	}
	return nil, openflow.Fail(openflow.BadMultipart, "statistics of kind %d are not supported", q.Kind)
}

// queueParts returns an error if a request names a missing port, or a queue, because there are none.
func (c *connection) queueParts(q *openflow.Request) error {
	if q.Port != flow.PortNone {
		if err := c.s.sw.checkPort(q.Port, openflow.QueueBadPort); err != nil {
			return err
		}
	}
	if q.Queue != openflow.AnyGroup {
		return openflow.Fail(openflow.BadQueue, "there is no queue %d", q.Queue)
	}
	return nil
}

func one(p openflow.Part) iter.Seq[openflow.Part] { return slices.Values([]openflow.Part{p}) }

func none() iter.Seq[openflow.Part] { return slices.Values([]openflow.Part(nil)) }

// each makes a part of each value, and leaves out those for which part returns nil.
func each[T any](all []T, part func(*T) openflow.Part) iter.Seq[openflow.Part] {
	return func(yield func(openflow.Part) bool) {
		for i := range all {
			if p := part(&all[i]); p != nil && !yield(p) {
				return
			}
		}
	}
}

func eachTable(part func(uint8) openflow.Part) iter.Seq[openflow.Part] {
	return func(yield func(openflow.Part) bool) {
		for id := range uint8(openflow.Tables) {
			if !yield(part(id)) {
				return
			}
		}
	}
}

// selectedFlows are the entries that a request selects.
func (s *Server) selectedFlows(q *openflow.FlowSelection) ([]telemetry.FlowStats, error) {
	if q.Table != openflow.AllTables && q.Table > lastTable {
		return nil, openflow.Fail(openflow.BadTableID, "there is no table %d", q.Table)
	}
	all, err := listed(s.sw, func() []telemetry.FlowStats {
		if q.Table == openflow.AllTables {
			return s.Switch.Flows()
		}
		return s.Switch.FlowsIn(q.Table)
	})
	return slices.DeleteFunc(all, func(f telemetry.FlowStats) bool {
		return (f.Cookie^q.Cookie)&q.CookieMask != 0 || !f.Match.Within(&q.Match) || !sendsTo(f.Actions, q.OutPort, q.OutGroup)
	}), err
}

func (s *Server) flows(q *openflow.FlowSelection) (iter.Seq[openflow.Part], error) {
	all, err := s.selectedFlows(q)
	return each(all, func(f *telemetry.FlowStats) openflow.Part {
		stats := flowStats(f)
		return &stats
	}), err
}

func flowStats(f *telemetry.FlowStats) openflow.FlowStats {
	return openflow.FlowStats{Entry: f.Entry, Packets: f.Packets, Bytes: f.Bytes, Duration: f.Duration, Idle: f.Idle}
}

func (s *Server) aggregate(q *openflow.FlowSelection) (iter.Seq[openflow.Part], error) {
	all, err := s.selectedFlows(q)
	a := &openflow.Aggregate{Flows: uint32(len(all))}
	for i := range all {
		a.Packets += all[i].Packets
		a.Bytes += all[i].Bytes
	}
	return one(a), err
}

func (s *Server) tables() (iter.Seq[openflow.Part], error) {
	all, err := listed(s.sw, s.sw.Tables)
	names, byID := s.Switch.Names(), map[uint8]*telemetry.TableStats{}
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return eachTable(func(id uint8) openflow.Part {
		t := &openflow.TableStats{ID: id, Name: names.Table(id)}
		if have := byID[id]; have != nil {
			t.Active, t.Lookups, t.Hits = uint32(have.Entries+have.Learned), have.Lookups, have.Hits
		}
		return t
	}), err
}

// tableFeatures are the features of all tables. It first applies the table names of the request.
func (c *connection) tableFeatures(q *openflow.Request) (iter.Seq[openflow.Part], error) {
	if len(q.Features) > 0 {
		if err := c.nameTables(q.Features); err != nil {
			return nil, err
		}
	}
	if q.More {
		return none(), nil
	}
	names := c.s.Switch.Names()
	return eachTable(func(id uint8) openflow.Part {
		return &openflow.TableFeatures{ID: id, Name: names.Table(id)}
	}), nil
}

func (c *connection) nameTables(all []openflow.TableName) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	c.s.changes.Lock()
	defer c.s.changes.Unlock()
	names := c.s.Switch.Names().Clone()
	for _, t := range all {
		if t.ID > lastTable {
			return openflow.Fail(openflow.BadTableID, "there is no table %d", t.ID)
		}
		if t.Name != "" {
			names.SetTable(t.ID, t.Name)
		}
	}
	if err := c.s.Switch.Apply(&flow.Bundle{Names: names, First: c.s.Switch.First()}); err != nil {
		return openflow.Fail(openflow.TableFeaturesNotPermitted, "names of tables: %v", err)
	}
	return nil
}

// sortedPorts are the ports of the switch by their number, so the local port comes last.
func (s *Server) sortedPorts() ([]telemetry.PortStats, error) {
	all, err := listed(s.sw, s.sw.Ports)
	slices.SortFunc(all, func(a, b telemetry.PortStats) int { return int(int64(a.No) - int64(b.No)) })
	return all, err
}

func portOfStats(p *telemetry.PortStats) openflow.Port {
	return openflow.Port{No: p.No, Name: p.Name, MAC: p.MAC, Config: configBits(&p.Config), Alive: p.Up && !p.Config.Down}
}

// ports are the ports as OpenFlow 1.0's features have them.
func (s *Server) ports() ([]openflow.Port, error) {
	all, err := s.sortedPorts()
	return valuesOf(all, portOfStats), err
}

func (s *Server) portDescs(no uint32) (iter.Seq[openflow.Part], error) {
	all, err := s.chosenPorts(no)
	return each(all, func(p *telemetry.PortStats) openflow.Part {
		d := portOfStats(p)
		return &d
	}), err
}

// chosenPorts are all ports, or the one of a number. A missing port is not an error, as in Open
// vSwitch.
func (s *Server) chosenPorts(no uint32) ([]telemetry.PortStats, error) {
	all, err := s.sortedPorts()
	if err != nil || no == flow.PortNone || no == flow.PortAll {
		return all, err
	}
	return slices.DeleteFunc(all, func(p telemetry.PortStats) bool { return p.No != no }), nil
}

func (s *Server) portStats(no uint32) (iter.Seq[openflow.Part], error) {
	all, err := s.chosenPorts(no)
	return each(all, func(p *telemetry.PortStats) openflow.Part { return countersOf(p, time.Since(s.begun)) }), err
}

func countersOf(p *telemetry.PortStats, age time.Duration) *openflow.PortStats {
	c := &p.Stats
	return &openflow.PortStats{
		No: p.No, Duration: age,
		RxPackets: c.RxPackets, RxBytes: c.RxBytes, RxDropped: c.RxDropped, RxErrs: c.RxErrors,
		TxPackets: c.TxPackets, TxBytes: c.TxBytes, TxDropped: c.TxDropped, TxErrs: c.TxErrors,
	}
}

func (s *Server) groupDescs(id uint32) (iter.Seq[openflow.Part], error) {
	all, err := listed(s.sw, s.sw.Groups)
	return each(all, func(g *telemetry.GroupStats) openflow.Part {
		if id != openflow.AllGroups && g.ID != id {
			return nil
		}
		return &openflow.GroupDesc{Group: g.Group}
	}), err
}

func (s *Server) groupStats(id uint32) (iter.Seq[openflow.Part], error) {
	all, err := listed(s.sw, s.sw.Groups)
	return each(all, func(g *telemetry.GroupStats) openflow.Part {
		if id != openflow.AllGroups && g.ID != id {
			return nil
		}
		o := &openflow.GroupStats{ID: g.ID, Packets: g.Packets, Bytes: g.Bytes, Duration: time.Since(s.begun)}
		for _, b := range g.Buckets {
			o.Buckets = append(o.Buckets, openflow.BucketCounters{Packets: b.Packets, Bytes: b.Bytes})
		}
		return o
	}), err
}

// chosenMeters are all meters, or the one of a number.
func (s *Server) chosenMeters(id uint32) ([]telemetry.MeterStats, error) {
	all, err := listed(s.sw, s.sw.Meters)
	if err != nil || id == openflow.AllMeters {
		return all, err
	}
	all = slices.DeleteFunc(all, func(m telemetry.MeterStats) bool { return m.ID != id })
	if len(all) == 0 {
		err = openflow.Fail(openflow.UnknownMeter, "there is no meter %d", id)
	}
	return all, err
}

func (s *Server) meterConfigs(id uint32) (iter.Seq[openflow.Part], error) {
	all, err := s.chosenMeters(id)
	return each(all, func(m *telemetry.MeterStats) openflow.Part { return &openflow.MeterConfig{Meter: m.Meter} }), err
}

func (s *Server) meterStats(id uint32) (iter.Seq[openflow.Part], error) {
	all, err := s.chosenMeters(id)
	return each(all, func(m *telemetry.MeterStats) openflow.Part {
		return &openflow.MeterStats{ID: m.ID, Packets: m.Packets, Bytes: m.Bytes, Duration: time.Since(s.begun), Dropped: m.Dropped}
	}), err
}
