package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// Why answers whether one end may open a connection to another, and what decides. The first
// packet of the connection is made up and walks as in a trace. Conntrack answers from a scratch
// copy of the connections; nothing is sent, counted or learned.
//
//	why.go        the question, and the walk
//	whyends.go    the two ends: Pods, Services, addresses
//	whytell.go    the sentence, from the walk
//	whydecide.go  in it: the decisions of policies, and why a packet is dropped
//	whygoes.go    in it: where a packet goes
//	whyseen.go    packets of these ends that were seen so far
//
// Package api joins the answers of several Nodes (whynodes.go), and prints them (whytext.go). A
// Service with several endpoints has a way to each, and all are walked.

// givenBack is a redirected packet as it left, and the port where it returns.
type givenBack struct {
	by    tables.Port
	frame []byte
}

// asking is a question in progress.
type asking struct {
	p        *Pipeline
	self     control.Self
	first    *local.FirstPackets
	from, to whyEnd
	proto    uint8
	src, dst netip.Addr
	walker   *Walker
}

// errExternal is the answer on an external Node.
var errExternal = errors.New("why is about Pods, and an external Node has none: use antrail trace")

// Why answers a question. The pipeline must have Objects.
func (p *Pipeline) Why(r *api.WhyRequest) (*api.WhyAnswer, error) {
	self, err := p.Objects.Self()
	if err != nil {
		return nil, err
	}
	if self.External {
		return nil, errExternal
	}
	q := &asking{p: p, self: self, first: local.NewFirstPackets(p.Switch.Flows(), nodePortsOf(&self)), walker: &Walker{Pipeline: p, Node: self.Node}}
	a := &api.WhyAnswer{Node: self.Node, Notes: p.notInForce(cluster.KindNetworkPolicy, cluster.KindClusterNetworkPolicy, cluster.KindAntreaNetworkPolicy)}
	if r.Carried != nil {
		err = q.carried(a, r.Carried)
	} else {
		err = q.answerWhy(a, r)
	}
	if err != nil {
		return nil, err
	}
	a.Conclude()
	return a, nil
}

// notInForce are notes on objects of some kinds that are not installed.
func (p *Pipeline) notInForce(kinds ...cluster.Kind) (notes []string) {
	for _, s := range append(p.Objects.Statuses(), p.RefusedObjects(AnyKind)...) {
		if s.State != ledger.Installed && slices.Contains(kinds, s.Object.Kind) {
			notes = append(notes, fmt.Sprintf("%s is %s", objectText(s.Object), State(s)))
		}
	}
	return notes
}

// answerWhy walks from one end to the other, once for each endpoint.
func (q *asking) answerWhy(a *api.WhyAnswer, r *api.WhyRequest) error {
	if err := q.findEnds(r); err != nil {
		return err
	}
	if nobody := q.nobody(&q.from.place); nobody != "" {
		a.Notes = append(a.Notes, nobody+": SpoofGuard stops a Pod that sends by it")
	}
	if q.to.place.Object == (cluster.Key{}) { // outside the cluster, where Egresses matter
		a.Notes = append(a.Notes, q.p.notInForce(cluster.KindEgress)...)
	}
	a.Origin = q.from.place.Node
	first := conntrack.Conn{InPort: q.entry(), Orig: conntrack.Direction{Tuple: conntrack.Tuple{
		Src: q.src, Dst: q.dst, Proto: q.proto, SrcPort: cmp.Or(r.SourcePort, flow.FirstPort), DstPort: q.to.port,
	}}}
	if _, isICMP := icmpProtocols[q.proto]; isICMP {
		first.Orig.SrcPort, first.Orig.DstPort = icmpProtocols[q.proto], 0
	}
	req := telemetry.TraceRequest{InPort: first.InPort, Frame: q.first.Compose(&first)}
	chosen, err := q.walk(a, req)
	if err != nil {
		return err
	}
	a.Seen = q.p.Seen(q.sought(chosen))
	more, err := WalkEach(a, req, chosen, q.walk)
	if more > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d more endpoints were not checked", more))
	}
	return err
}

// MostBuckets bounds the buckets of a group that are walked.
const MostBuckets = 64

// WalkEach walks through each bucket of a select group; chosen may be nil. The answer already
// has the way through the chosen bucket. more is how many buckets were not walked.
func WalkEach(
	a *api.WhyAnswer, req telemetry.TraceRequest, chosen *telemetry.Step, walk func(*api.WhyAnswer, telemetry.TraceRequest) (*telemetry.Step, error),
) (more int, err error) {
	if chosen == nil {
		return 0, nil
	}
	byHash := a.Ways[0]
	a.Ways = nil
	for i := range min(len(chosen.Group.Buckets), MostBuckets) {
		if i == chosen.Bucket {
			a.Ways = append(a.Ways, byHash)
			continue
		}
		req.Buckets = map[uint32]int{chosen.Group.ID: i}
		if _, err := walk(a, req); err != nil {
			return 0, err
		}
	}
	return max(0, len(chosen.Group.Buckets)-MostBuckets), nil
}

// ChosenBucket is the step at the first select group of a walk; nil without one.
func ChosenBucket(t *telemetry.Trace) *telemetry.Step {
	i := slices.IndexFunc(t.Steps, func(s telemetry.Step) bool { return s.Kind == telemetry.StepBucket && s.Group.Type == flow.GroupSelect })
	if i < 0 {
		return nil
	}
	return &t.Steps[i]
}

// icmpProtocols are the types of echo requests, by IP protocol.
var icmpProtocols = map[uint8]uint16{packet.ProtoICMP: packet.ICMPEcho, packet.ProtoICMPv6: packet.ICMPv6Echo}

// entry is the port where packets of the first end enter.
func (q *asking) entry() uint32 {
	switch from := &q.from.place; {
	case from.Port != 0:
		return from.Port
	case from.Tunnel && q.self.Tunnel.No != 0:
		return q.self.Tunnel.No
	case !q.toUnderlay():
		return q.self.Gateway.No
	case from.Object.Kind == cluster.KindNode && from.Node == q.self.Node:
		return q.self.Bridge.No
	}
	return q.self.Uplink.No
}

// toUnderlay says whether the second end is a Pod of this Node on the underlay, which packets
// do not reach through the gateway.
func (q *asking) toUnderlay() bool {
	to := &q.to.place
	return q.self.Uplink.No != 0 && to.Port != 0 && !slices.ContainsFunc(q.self.PodCIDRs, func(p netip.Prefix) bool { return p.Contains(q.dst) })
}

// walk adds a way. It returns the step that chose an endpoint.
func (q *asking) walk(a *api.WhyAnswer, req telemetry.TraceRequest) (*telemetry.Step, error) {
	t, err := q.p.WalkDry(&req)
	if err != nil {
		return nil, err
	}
	return q.addWay(a, t)
}

// carried continues with a packet that left another Node.
func (q *asking) carried(a *api.WhyAnswer, c *api.Carried) error {
	if c.To != q.self.Node {
		return fmt.Errorf("this is Node %s; the packet goes to Node %s", q.self.Node, c.To)
	}
	w := &trace.Walk{InPort: trace.Port{No: q.self.Tunnel.No}, Frame: c.Frame, Length: len(c.Frame), Tunnel: c.Tunnel}
	if c.Tunnel == nil {
		w.InPort.No = q.self.Gateway.No
		if err := q.readdress(w.Frame); err != nil {
			return err
		}
	}
	t, err := q.p.Trace(api.RequestOf(w))
	if err != nil {
		return err
	}
	if f, ok := packetin.FlightOf(c.Frame); ok {
		q.src, q.dst, q.proto, q.to.port = f.Src, f.Dst, f.Proto, f.DstPort
	}
	q.from, q.to.place = q.someone(q.src), q.p.Objects.PlaceOf(q.dst)
	chosen, err := q.addWay(a, t)
	a.Seen = q.p.Seen(q.sought(chosen))
	return err
}

// readdress sets the MAC addresses of a frame from the Node's own network as the gateway does.
func (q *asking) readdress(frame []byte) error {
	f, ok := packetin.FlightOf(frame)
	if !ok {
		return errors.New("the packet that came from another Node is not an IP packet")
	}
	to, here := q.first.Owners[f.Dst]
	if !here {
		to = q.first.Routers[q.self.Gateway.No]
	}
	e := packet.Ethernet(frame)
	e.SetSrc(q.self.Gateway.MAC)
	e.SetDst(to.MAC())
	return nil
}

// addWay converts a trace to a way. It returns the step that chose an endpoint.
func (q *asking) addWay(a *api.WhyAnswer, t *telemetry.Trace) (*telemetry.Step, error) {
	walk, err := q.walker.Walk(t)
	if err != nil {
		return nil, err
	}
	chosen := ChosenBucket(t)
	tell := teller{asking: q, t: t, chosen: chosen, back: &givenBack{}}
	way := tell.way()
	tell.noteEdits(a)
	way.Walks = trace.Joined{walk}
	if tell.back.frame != nil {
		err = q.goOn(&way, tell.back)
	}
	a.Ways = append(a.Ways, way)
	return chosen, err
}

// goOn walks a redirected packet that comes back unchanged. Policies do not check it again.
func (q *asking) goOn(w *api.WhyWay, back *givenBack) error {
	t, err := q.p.WalkDry(&telemetry.TraceRequest{InPort: back.by.No, Frame: back.frame})
	if err != nil {
		return err
	}
	walk, err := q.walker.Walk(t)
	if err != nil {
		return err
	}
	rest := teller{asking: q, t: t, back: &givenBack{}}.way()
	w.Walks, w.Next = append(w.Walks, walk), rest.Next
	by := "if it comes back by " + back.by.Name + ", "
	w.Advice = cmp.Or(rest.Advice, w.Advice)
	if rest.Denied != "" {
		w.Denied, w.Met = by+rest.Denied, rest.Met
	}
	for i, end := range rest.Ends {
		w.Ends = append(w.Ends, map[bool]string{true: by}[i == 0]+end)
	}
	isWanted := func(d api.WhyDecision) bool { return d.Direction == ingress }
	if i := slices.IndexFunc(rest.Decisions, isWanted); i >= 0 && !slices.ContainsFunc(w.Decisions, isWanted) {
		w.Decisions = append(w.Decisions, rest.Decisions[i])
	}
	return nil
}

// ingress is the direction of a decision on what a Pod receives.
const ingress = "ingress"

// nodePortsOf are the ports of this Node that belong to no pod, by its NodeConfig.
func nodePortsOf(s *control.Self) *door.NodePorts {
	return &door.NodePorts{
		Gateway: s.Gateway.No, Tunnel: s.Tunnel.No, GatewayMAC: s.Gateway.MAC,
		FarMAC: tables.GlobalVirtualMAC, Mark: uint32(tables.HostLocalSourceMark.Field.Mask().Lo), Addresses: s.GatewayAddresses,
	}
}
