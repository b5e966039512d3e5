package openflow

import (
	"iter"

	"github.com/antrail/antrail/flow"
)

// StatsKind is the subject of a multipart message, which OpenFlow 1.0 calls statistics.
type StatsKind uint16

// The kinds, by their numbers.
const (
	StatsDesc          StatsKind = 0
	StatsFlow          StatsKind = 1
	StatsAggregate     StatsKind = 2
	StatsTable         StatsKind = 3
	StatsPort          StatsKind = 4
	StatsQueue         StatsKind = 5
	StatsGroup         StatsKind = 6
	StatsGroupDesc     StatsKind = 7
	StatsGroupFeatures StatsKind = 8
	StatsMeter         StatsKind = 9
	StatsMeterConfig   StatsKind = 10
	StatsMeterFeatures StatsKind = 11
	StatsTableFeatures StatsKind = 12
	StatsPortDesc      StatsKind = 13
	StatsTableDesc     StatsKind = 14
	StatsQueueDesc     StatsKind = 15
	StatsFlowMonitor   StatsKind = 16
)

// nxStats are the kinds that Nicira's extension to OpenFlow 1.0 has, by its subtypes.
var nxStats = map[uint32]StatsKind{
	0: StatsFlow, 1: StatsAggregate, 2: StatsFlowMonitor, 7: StatsGroup, 8: StatsGroupDesc, 9: StatsGroupFeatures,
}

// nxIPFIXBridge and nxIPFIXFlow are statistics of IPFIX, which this switch does not have.
const (
	nxIPFIXBridge = 3
	nxIPFIXFlow   = 4
)

// Request is a multipart request.
type Request struct {
	Kind StatsKind
	// NX is set if the request, and so the answer, is Nicira's in OpenFlow 1.0.
	NX bool
	// Port, Queue, Group and Meter choose the subjects; OFPP_ANY and the like choose all.
	Port, Queue, Group, Meter uint32
	// Flows chooses entries, of StatsFlow and StatsAggregate.
	Flows FlowSelection
	// Features are tables to be changed, of StatsTableFeatures; empty for a query.
	Features []TableName
	// Monitors are the entries to watch, of StatsFlowMonitor.
	Monitors []FlowMonitor
	// More is set if another request follows that belongs to this one.
	More bool
}

// FlowSelection chooses entries.
type FlowSelection struct {
	Table              uint8 // AllTables for all
	OutPort, OutGroup  uint32
	Cookie, CookieMask uint64
	Match              flow.Match
}

// TableName is a table, and the name that a request gives it.
type TableName struct {
	ID   uint8
	Name string
}

func decodeMultipart(r *reader, v Version) (Body, error) {
	q := &Request{Port: flow.PortNone, Queue: AnyGroup, Group: AllGroups, Meter: AllMeters}
	kind, flags := r.u16(), r.u16()
	if v >= V13 {
		r.skip(4)
	}
	q.Kind, q.More = StatsKind(kind), flags&1 != 0
	if kind == experimenterKind {
		return q.experimenter(r, v)
	}
	if q.More && q.Kind != StatsTableFeatures {
		return nil, fail(BadMultipart, "a request of kind %d in several parts is not supported", kind)
	}
	return q, q.body(r, v)
}

// experimenter reads a request of Nicira.
func (q *Request) experimenter(r *reader, v Version) (Body, error) {
	vendor, subtype := r.u32(), r.u32()
	switch {
	case r.short:
		return nil, r.done()
	case vendor == onf && v == V13 && subtype == onfFlowMonitor:
		q.Kind = StatsFlowMonitor
		return q, q.body(r, v)
	case vendor != nicira:
		return nil, fail(BadExperimenter, "no statistics of experimenter %#x are supported", vendor)
	case subtype == nxIPFIXBridge, subtype == nxIPFIXFlow:
		return nil, fail(NotConfigured, "this switch has no IPFIX")
	case v != V10:
		return nil, fail(BadExperimenterType, "Nicira's statistics %d are not supported in %s", subtype, v)
	}
	r.skip(4)
	kind, ok := nxStats[subtype]
	if !ok {
		return nil, fail(BadExperimenterType, "Nicira's statistics %d are not supported", subtype)
	}
	q.Kind, q.NX = kind, true
	return q, q.body(r, v)
}

// body reads the request's subject.
func (q *Request) body(r *reader, v Version) error {
	ten := v == V10 && !q.NX
	switch q.Kind {
	case StatsFlow, StatsAggregate:
		if err := q.Flows.decode(r, v, q.NX); err != nil {
			return err
		}
	case StatsPort:
		q.port(r, v)
	case StatsPortDesc:
		if v >= V15 {
			q.port(r, v)
		}
	case StatsQueue, StatsQueueDesc:
		q.queue(r, v)
	case StatsGroup:
		q.Group = r.u32()
		r.skip(4)
	case StatsGroupDesc:
		if v == V15 || q.NX {
			q.Group = r.u32()
			r.skip(4)
		} else {
			r.rest() // ovs-ofctl sends a group in earlier versions, too
		}
	case StatsMeter, StatsMeterConfig:
		q.Meter = r.u32()
		r.skip(4)
	case StatsFlowMonitor:
		if err := q.monitors(r, v); err != nil {
			return err
		}
	case StatsTableFeatures:
		if err := q.features(r); err != nil {
			return err
		}
	case StatsDesc, StatsTable, StatsGroupFeatures, StatsMeterFeatures, StatsTableDesc:
	default:
		return fail(BadMultipart, "statistics of kind %d are not supported", q.Kind)
	}
	after13 := q.Kind >= StatsGroup && q.Kind != StatsPortDesc
	switch {
	case ten && after13, q.Kind == StatsTableDesc && v < V14, q.Kind == StatsQueueDesc && v < V14:
		return fail(BadMultipart, "%s has no statistics of kind %d", v, q.Kind)
	case len(r.b) != 0:
		return fail(BadLength, "%d bytes follow a request of kind %d", len(r.b), q.Kind)
	}
	return r.done()
}

func (q *Request) port(r *reader, v Version) {
	if v == V10 {
		q.Port = flow.PortOf16(uint32(r.u16()))
		r.skip(6)
		return
	}
	q.Port = r.u32()
	r.skip(4)
}

func (q *Request) queue(r *reader, v Version) {
	if v == V10 {
		q.Port = flow.PortOf16(uint32(r.u16()))
		r.skip(2)
		if q.Port == flow.PortAll {
			q.Port = flow.PortNone
		}
	} else {
		q.Port = r.u32()
	}
	q.Queue = r.u32()
}

// tableFeaturesSize is the size of a table's features without properties.
const tableFeaturesSize = 64

// features reads the tables that a request changes. Only their names can change.
func (q *Request) features(r *reader) error {
	for len(r.b) > 0 {
		n := int(r.u16())
		if n < tableFeaturesSize || n-2 > len(r.b) {
			return fail(BadLength, "a table's features have %d bytes", n)
		}
		one := &reader{b: r.take(n - 2)}
		id := one.u8()
		one.skip(5)
		q.Features = append(q.Features, TableName{id, cString(one.take(32))})
	}
	return nil
}

// decode reads the selection of entries.
func (s *FlowSelection) decode(r *reader, v Version, nx bool) (err error) {
	s.OutPort, s.OutGroup = flow.PortNone, AnyGroup
	switch {
	case nx:
		s.OutPort = flow.PortOf16(uint32(r.u16()))
		n := int(r.u16())
		s.Table = r.u8()
		r.skip(3)
		var c cookieMatch
		err = r.matchNXM(&s.Match, n, &c)
		s.Cookie, s.CookieMask = c.value&c.mask, c.mask
		return err
	case v == V10:
		s.Match = r.match10()
		s.Table = r.u8()
		r.skip(1)
		s.OutPort = flow.PortOf16(uint32(r.u16()))
		return r.done()
	}
	s.Table = r.u8()
	r.skip(3)
	s.OutPort, s.OutGroup = r.u32(), r.u32()
	r.skip(4)
	s.Cookie, s.CookieMask = r.u64(), r.u64()
	s.Cookie &= s.CookieMask
	return r.match(&s.Match)
}

// Part is one element of an answer: an entry, a port, a table.
type Part interface {
	part(w *writer, v Version, nx bool) error
}

// Reply is a message of a multipart reply (Pages).
type Reply struct {
	Kind  StatsKind
	NX    bool
	More  bool
	parts []byte
}

// encode implements Body.
func (p *Reply) encode(w *writer, v Version) error {
	w.replyHead(p.Kind, p.NX, p.More, v)
	w.bytes(p.parts)
	return nil
}

func (w *writer) replyHead(kind StatsKind, nx, more bool, v Version) {
	ofONF := kind == StatsFlowMonitor && v == V13
	if nx || ofONF {
		w.u16(experimenterKind)
	} else {
		w.u16(uint16(kind))
	}
	flags := uint16(0)
	if more {
		flags = 1
	}
	w.u16(flags)
	if v >= V13 {
		w.u32(0)
	}
	if ofONF {
		w.u32(onf)
		w.u32(onfFlowMonitor)
	}
	if nx {
		w.u32(nicira)
		for subtype, k := range nxStats {
			if k == kind {
				w.u32(subtype)
			}
		}
		w.u32(0)
	}
}

// replyRoom is the number of bytes of parts that always fit into one message.
const replyRoom = maxMessage - headerSize - 16

// Pages makes the messages that answer a request: as many parts in each as fit into 64 kB.
// A part that is too large for a message is an error, as in Open vSwitch. The caller may stop
// early.
func Pages(v Version, xid uint32, q *Request, parts iter.Seq[Part]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		w := &writer{}
		page := func(b []byte, more bool) bool {
			return yield(Encode(Message{v, xid, &Reply{q.Kind, q.NX, more, b}}))
		}
		for p := range parts {
			start := w.len()
			if err := p.part(w, v, q.NX); err != nil {
				yield(nil, err)
				return
			}
			if w.len() > replyRoom {
				if start > 0 && !page(w.b[:start], true) {
					return
				}
				w.b = append(w.b[:0], w.b[start:]...)
			}
		}
		page(w.b, false)
	}
}
