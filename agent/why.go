package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// Why: may one end open a connection to another, and who says so. The first packet
// of such a connection is made up and walks, as for a trace: conntrack answers from
// a scratch copy of the connections, and nothing is sent, counted or learned.
//
//	why.go        the question, and the walk
//	whyends.go    the two ends: Pods, Services, addresses
//	whytell.go    the sentence, from the walk
//	whydecide.go  in it: what policies decided, and why a packet goes nowhere
//	whygoes.go    in it: where a packet goes
//	whyseen.go    what was seen so far of such connections
//	whyjoin.go    several Nodes asked, and their answers put together
//	whytext.go    the answer in some lines, with what to do next
//
// A Service with several endpoints has a way to each, and all are walked.

// WhyRequest asks about the connections from one end to another, or goes on with
// a packet that another Node sent here.
type WhyRequest struct {
	// From is namespace/pod, an address, external or node; To may also be
	// svc:namespace/name, and has a port behind a colon: a number, or a name that the
	// Pod or Service has. A Service with one port needs none, ICMP has none.
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Protocol string `json:"protocol,omitempty"` // tcp, udp, sctp or icmp; empty: tcp, or that of the Service's port
	IPv6     bool   `json:"ipv6,omitempty"`     // IPv6 addresses of ends that have both
	// SourcePort is that of the client; 0: 40000.
	SourcePort uint16   `json:"sourcePort,omitempty"`
	Carried    *Carried `json:"carried,omitempty"`
}

// Carried is a packet on its way from one Node to another.
type Carried struct {
	To     string        `json:"to"` // Node
	Frame  trace.Bytes   `json:"frame"`
	Tunnel *trace.Tunnel `json:"tunnel,omitempty"` // nil: it goes by the Nodes' own network
}

// WhyAnswer is the verdict on a question.
type WhyAnswer struct {
	Node string `json:"node"`
	// Allowed says that nothing on the whole way forbids it; Undecided that nothing does of
	// what was asked, and that Nodes that were not asked decide the rest.
	Allowed   bool   `json:"allowed"`
	Undecided bool   `json:"undecided,omitempty"`
	Sentence  string `json:"sentence"`
	// Ways are the packet's possible ways: one, or one for each endpoint of a Service.
	Ways []WhyWay `json:"ways"`
	// Origin is the Node where packets of the first end enter the cluster's network;
	// empty for any.
	Origin string   `json:"origin,omitempty"`
	Notes  []string `json:"notes,omitempty"` // policies and Egresses that are not in force, and what else to know
	Seen   *WhySeen `json:"seen,omitempty"`  // nil where no packet ever came
}

// WhyWay is one way, and what was decided on it.
type WhyWay struct {
	Endpoint string `json:"endpoint,omitempty"` // address:port of the Service's endpoint, and its Pod
	Allowed  bool   `json:"allowed"`
	Sentence string `json:"sentence"`
	// Denied says why the way ends; empty when it does not.
	Denied    string        `json:"denied,omitempty"`
	What      string        `json:"what"` // tcp 80 from default/client-a to default/web-a
	Decisions []WhyDecision `json:"decisions"`
	Ends      []string      `json:"ends,omitempty"` // where the packet goes, in words
	Next      *Carried      `json:"next,omitempty"` // another Node decides more
	// Unasked are Nodes that decide too and were not asked: the one it comes from, and
	// the one in Next.
	Unasked []string     `json:"unasked,omitempty"`
	Walks   trace.Joined `json:"walks"`
	// Met is of the entry where a way ends that is denied; nil where no packet ever came.
	Met *WhyMet `json:"met,omitempty"`
	// Severed says that what goes to the next Node is lost before it is there.
	Severed bool `json:"severed,omitempty"`
	// Advice is what to do next, where this way tells.
	Advice string `json:"advice,omitempty"`

	back *givenBack // of a redirect, to be walked
}

// givenBack is a packet as it left for a port, when it comes back by another.
type givenBack struct {
	by    tables.Port
	frame []byte
}

// WhyDecision is what policies say in one direction.
type WhyDecision struct {
	Node      string             `json:"node"`
	Direction string             `json:"direction"`         // ingress or egress
	Action    control.RuleAction `json:"action,omitempty"`  // empty: no rule matched
	Policies  []string           `json:"policies"`          // that decided; none: nobody asks
	Rule      string             `json:"rule,omitempty"`    // its name, or its place
	Tier      string             `json:"tier,omitempty"`    // of an Antrea-native policy
	Priority  float64            `json:"priority,omitzero"` // likewise
	Isolated  bool               `json:"isolated,omitempty"`
}

func (p *pipeline) answerWhy(w http.ResponseWriter, r *http.Request) {
	var req WhyRequest
	d := json.NewDecoder(io.LimitReader(r.Body, maxTraceRequest))
	d.DisallowUnknownFields()
	err := d.Decode(&req)
	var a *WhyAnswer
	if err == nil {
		a, err = p.why(&req)
	}
	writeJSON(w, a, err)
}

// asking is a question under way.
type asking struct {
	p        *pipeline
	self     control.Self
	first    *switchd.FirstPackets
	from, to whyEnd
	proto    uint8
	src, dst netip.Addr
	walker   *walker
}

// why answers a question.
func (p *pipeline) why(r *WhyRequest) (*WhyAnswer, error) {
	if p.objects == nil {
		return nil, fmt.Errorf("%w; trace walks packets through it", errNoObjects)
	}
	self, err := p.objects.Self()
	if err != nil {
		return nil, err
	}
	q := &asking{p: p, self: self, first: switchd.NewFirstPackets(p.sw.Flows(), nodePortsOf(&self)), walker: &walker{p: p, node: self.Node}}
	a := &WhyAnswer{Node: self.Node, Notes: p.notInForce(control.KindNetworkPolicy, control.KindClusterNetworkPolicy, control.KindAntreaNetworkPolicy)}
	if r.Carried != nil {
		err = q.carried(a, r.Carried)
	} else {
		err = q.ask(a, r)
	}
	if err != nil {
		return nil, err
	}
	a.conclude()
	return a, nil
}

// notInForce are the objects of some kinds that are not as they should be.
func (p *pipeline) notInForce(kinds ...control.Kind) (notes []string) {
	for _, s := range append(p.objects.Statuses(), p.refusedObjects(anyKind)...) {
		if s.State != control.Installed && slices.Contains(kinds, s.Object.Kind) {
			notes = append(notes, fmt.Sprintf("%s is %s", objectText(s.Object), state(s)))
		}
	}
	return notes
}

// ask walks from one end to the other, once for each endpoint.
func (q *asking) ask(a *WhyAnswer, r *WhyRequest) error {
	if err := q.findEnds(r); err != nil {
		return err
	}
	if nobody := q.nobody(&q.from.place); nobody != "" {
		a.Notes = append(a.Notes, nobody+": SpoofGuard stops a Pod that sends by it")
	}
	if q.to.place.Object == (control.Key{}) { // outside, where an Egress matters
		a.Notes = append(a.Notes, q.p.notInForce(control.KindEgress)...)
	}
	a.Origin = q.from.place.Node
	first := conntrack.Conn{InPort: q.entry(), Orig: conntrack.Direction{Tuple: conntrack.Tuple{
		Src: q.src, Dst: q.dst, Proto: q.proto, SrcPort: cmp.Or(r.SourcePort, flow.FirstPort), DstPort: q.to.port,
	}}}
	if _, isICMP := icmpProtocols[q.proto]; isICMP {
		first.Orig.SrcPort, first.Orig.DstPort = icmpProtocols[q.proto], 0
	}
	req := dataplane.TraceRequest{InPort: first.InPort, Frame: q.first.Compose(&first)}
	chosen, err := q.walk(a, req)
	if err != nil {
		return err
	}
	a.Seen = q.look(q.places(chosen))
	if chosen != nil {
		return q.askEach(a, req, chosen)
	}
	return nil
}

// mostEndpoints is how many endpoints of a Service are asked.
const mostEndpoints = 64

// askEach walks to each endpoint of a Service. The way to the one that was chosen is in
// the answer already.
func (q *asking) askEach(a *WhyAnswer, req dataplane.TraceRequest, chosen *dataplane.Step) error {
	byHash := a.Ways[0]
	a.Ways = nil
	for i := range min(len(chosen.Group.Buckets), mostEndpoints) {
		if i == chosen.Bucket {
			a.Ways = append(a.Ways, byHash)
			continue
		}
		req.Buckets = map[uint32]int{chosen.Group.ID: i}
		if _, err := q.walk(a, req); err != nil {
			return err
		}
	}
	if more := len(chosen.Group.Buckets) - mostEndpoints; more > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d more endpoints were not asked", more))
	}
	return nil
}

// icmpProtocols are the types of echo requests by protocol.
var icmpProtocols = map[uint8]uint16{packet.ProtoICMP: packet.ICMPEcho, packet.ProtoICMPv6: packet.ICMPv6Echo}

// entry is the port where packets of the first end enter.
func (q *asking) entry() uint32 {
	switch from := &q.from.place; {
	case from.Port != 0:
		return from.Port
	case from.Tunnel && q.self.Tunnel.No != 0:
		return q.self.Tunnel.No
	}
	return q.self.Gateway.No
}

// walk adds a way, and tells of the choice of an endpoint that it came by.
func (q *asking) walk(a *WhyAnswer, req dataplane.TraceRequest) (*dataplane.Step, error) {
	t, err := q.p.walkDry(&req)
	if err != nil {
		return nil, err
	}
	return q.addWay(a, t)
}

// carried goes on with a packet that left another Node.
func (q *asking) carried(a *WhyAnswer, c *Carried) error {
	if c.To != q.self.Node {
		return fmt.Errorf("this is Node %s; the packet goes to %s", q.self.Node, c.To)
	}
	w := &trace.Walk{InPort: trace.Port{No: q.self.Tunnel.No}, Frame: c.Frame, Length: len(c.Frame), Tunnel: c.Tunnel}
	if c.Tunnel == nil {
		w.InPort.No = q.self.Gateway.No
		if err := q.readdress(w.Frame); err != nil {
			return err
		}
	}
	t, err := q.p.trace(requestOf(w))
	if err != nil {
		return err
	}
	if f, ok := packetin.FlightOf(c.Frame); ok {
		q.src, q.dst, q.proto, q.to.port = f.Src, f.Dst, f.Proto, f.DstPort
	}
	q.from, q.to.place = q.someone(q.src), q.p.objects.PlaceOf(q.dst)
	chosen, err := q.addWay(a, t)
	a.Seen = q.look(q.places(chosen))
	return err
}

// readdress gives a frame that comes by the Node's own network the MAC addresses
// that it has behind the gateway.
func (q *asking) readdress(frame []byte) error {
	f, ok := packetin.FlightOf(frame)
	if !ok {
		return errors.New("the packet that came from another Node is no IP packet")
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

// addWay turns a trace into a way.
func (q *asking) addWay(a *WhyAnswer, t *dataplane.Trace) (*dataplane.Step, error) {
	walk, err := q.walker.walk(t)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(t.Steps, func(s dataplane.Step) bool { return s.Kind == dataplane.StepBucket && s.Group.Type == flow.GroupSelect })
	var chosen *dataplane.Step
	if i >= 0 {
		chosen = &t.Steps[i]
	}
	tell := teller{asking: q, t: t, chosen: chosen}
	way := tell.way()
	tell.noteEdits(a)
	way.Walks = trace.Joined{walk}
	if way.back != nil {
		err = q.goOn(&way)
	}
	a.Ways = append(a.Ways, way)
	return chosen, err
}

// goOn has a redirected packet come back as it left. Of policies nobody is asked again.
func (q *asking) goOn(w *WhyWay) error {
	t, err := q.p.walkDry(&dataplane.TraceRequest{InPort: w.back.by.No, Frame: w.back.frame})
	if err != nil {
		return err
	}
	walk, err := q.walker.walk(t)
	if err != nil {
		return err
	}
	rest := teller{asking: q, t: t}.way()
	w.Walks, w.Next = append(w.Walks, walk), rest.Next
	by := "if it comes back by " + w.back.by.Name + ", "
	w.Advice = cmp.Or(rest.Advice, w.Advice)
	if rest.Denied != "" {
		w.Denied, w.Met = by+rest.Denied, rest.Met
	}
	for i, end := range rest.Ends {
		w.Ends = append(w.Ends, map[bool]string{true: by}[i == 0]+end)
	}
	asked := func(d WhyDecision) bool { return d.Direction == ingress }
	if i := slices.IndexFunc(rest.Decisions, asked); i >= 0 && !slices.ContainsFunc(w.Decisions, asked) {
		w.Decisions = append(w.Decisions, rest.Decisions[i])
	}
	return nil
}

// ingress is the direction of a decision on what a Pod gets.
const ingress = "ingress"
