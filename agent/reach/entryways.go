package reach

import (
	"cmp"
	"errors"
	"net/netip"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/trace"
)

// asking is a question in progress.
type asking struct {
	p        *pipeline.Pipeline
	from, to end
	proto    uint8
	senders  *senders
	walker   *pipeline.Walker
}

var errCarried = errors.New("without objects Nodes are unknown: use antrail trace for a packet from another Node")

// Why answers a question. The error says which end is wrong, and what to give.
func Why(p *pipeline.Pipeline, r *api.WhyRequest) (*api.WhyAnswer, error) {
	if r.Carried != nil {
		return nil, errCarried
	}
	q := &asking{p: p, senders: newSenders(p), walker: &pipeline.Walker{Pipeline: p}}
	if err := q.findEnds(r); err != nil {
		return nil, err
	}
	a := &api.WhyAnswer{Notes: q.notes()}
	req := telemetry.TraceRequest{InPort: q.from.port, Frame: q.compose(r.SourcePort)}
	chosen, err := q.walk(a, req)
	if err == nil {
		a.Seen = p.Seen(q.sought(chosen))
		err = q.walkEach(a, req, chosen)
	}
	if err != nil {
		return nil, err
	}
	a.Conclude()
	return a, nil
}

// compose makes the first frame of the connection.
func (q *asking) compose(sourcePort uint16) []byte {
	var m flow.Match
	add := func(id flow.FieldID, v flow.Value) { m.AddExact(id, v) }
	add(flow.EthSrc, q.from.mac)
	add(flow.EthDst, q.to.mac)
	src, dst := flow.IPSrc, flow.IPDst
	if q.to.addr.Is4() {
		add(flow.EthType, flow.Value{Lo: packet.EtherTypeIPv4})
	} else {
		add(flow.EthType, flow.Value{Lo: packet.EtherTypeIPv6})
		src, dst = flow.IPv6Src, flow.IPv6Dst
	}
	add(flow.IPProto, flow.Value{Lo: uint64(q.proto)})
	add(src, flow.ValueOfAddr(q.from.addr))
	add(dst, flow.ValueOfAddr(q.to.addr))
	if ports, has := portFields[q.proto]; has {
		add(ports[0], flow.Value{Lo: uint64(cmp.Or(sourcePort, flow.FirstPort))})
		add(ports[1], flow.Value{Lo: uint64(q.to.l4)})
	}
	flow.AssumeFirst(&m)
	return flow.Compose(&m.Value)
}

// portFields are the fields of a protocol's source and destination port.
var portFields = map[uint8][2]flow.FieldID{
	packet.ProtoTCP: {flow.TCPSrc, flow.TCPDst}, packet.ProtoUDP: {flow.UDPSrc, flow.UDPDst}, packet.ProtoSCTP: {flow.SCTPSrc, flow.SCTPDst},
}

// walk adds a way, and returns the step at its first select group; nil without one.
func (q *asking) walk(a *api.WhyAnswer, req telemetry.TraceRequest) (*telemetry.Step, error) {
	t, err := q.p.WalkDry(&req)
	if err != nil {
		return nil, err
	}
	walk, err := q.walker.Walk(t)
	if err != nil {
		return nil, err
	}
	r := teller{asking: q, t: t, chosen: pipeline.ChosenBucket(t)}
	way := r.way()
	way.Walks = trace.Joined{walk}
	a.Ways = append(a.Ways, way)
	return r.chosen, nil
}

// walkEach walks by each bucket of a select group.
func (q *asking) walkEach(a *api.WhyAnswer, req telemetry.TraceRequest, chosen *telemetry.Step) error {
	more, err := pipeline.WalkEach(a, req, chosen, q.walk)
	if more > 0 {
		a.Notes = append(a.Notes, countText(more, "more bucket was", "more buckets were")+" not walked")
	}
	return err
}

// sought selects the connections and dropped packets of the question: to the second end, or to
// an endpoint in a bucket.
func (q *asking) sought(chosen *telemetry.Step) *pipeline.Sought {
	return &pipeline.Sought{Src: q.from.addr, Proto: q.proto, Places: pipeline.PlacesOf(netip.AddrPortFrom(q.to.addr, q.to.l4), chosen)}
}
