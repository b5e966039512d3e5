package agent

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/trace"
)

// TraceRequest asks for the walk of one packet.
type TraceRequest struct {
	// Flow describes the packet as a match does: in_port and headers, and what
	// it carries of registers, marks and tunnel fields. What it leaves out of
	// nw_ttl, tp_src, tcp_flags and icmp_type is as in the first packet of a
	// connection: 64, 40000, syn, echo request.
	Flow string `json:"flow"`
	// Packet is the frame in hexadecimal, in place of the headers in Flow.
	Packet string `json:"packet,omitempty"`
	// CTNext answers ct() actions one after the other, each a list of ct_state
	// words: "trk,new"; then trk,new. When empty, connections are looked up.
	CTNext []string `json:"ctNext,omitempty"`
	// CT answers the first ct() actions as they were answered once.
	CT []TraceCT `json:"ct,omitempty"`
	// Undone is work that the frame's sender left to do.
	Undone *trace.Undone `json:"undone,omitempty"`
}

// TraceCT is what a ct() action answered once.
type TraceCT struct {
	State string `json:"state"` // words of ct_state
	Mark  uint32 `json:"mark,omitempty"`
	Label string `json:"label,omitempty"` // as ct_label
	// Source and Destination are the packet's ends as NAT left them, with their ports
	// if it has any; empty where it did nothing.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
}

// TraceAnswer is a trace as JSON.
type TraceAnswer struct {
	Verdict  string   `json:"verdict"`
	Outputs  []uint32 `json:"outputs"`
	PacketIn bool     `json:"packetIn,omitempty"`
	Waits    bool     `json:"waits,omitempty"`  // a fragment, for the rest of its datagram
	Reason   string   `json:"reason,omitempty"` // of a drop
	Table    string   `json:"table,omitempty"`  // where it was dropped or waits
	Text     string   `json:"text"`
	// Entries are those that the tables gave, in order.
	Entries []TraceEntry `json:"entries"`
	// Walk is the whole way, step by step, with the objects behind entries.
	Walk *trace.Walk `json:"walk"`
}

// TraceEntry is an entry that a packet met; Match and Actions are empty, and the
// priority is 0, where no entry matched.
type TraceEntry struct {
	Table    string `json:"table"`
	Priority uint16 `json:"priority"`
	Match    string `json:"match"`
	Actions  string `json:"actions"`
	// Objects want the entry; none are known of flow files.
	Objects []OriginText `json:"objects,omitempty"`
}

// maxTraceRequest bounds the body of a request.
const maxTraceRequest = 1 << 20

func (p *pipeline) answerTrace(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	var req TraceRequest
	if err == nil {
		err = json.NewDecoder(io.LimitReader(r.Body, maxTraceRequest)).Decode(&req)
	}
	var t *dataplane.Trace
	if err == nil {
		t, err = p.trace(&req)
	}
	if q.explain && !q.json && p.objects == nil {
		err = errNoObjects
	}
	var walk *trace.Walk
	if err == nil {
		walk, err = (&walker{p: p, text: true}).walk(t)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.json:
		a := p.traceAnswer(t, walk.Text)
		walk.Text = "" // it is in the answer
		a.Walk = walk
		writeJSON(w, a, nil)
	case q.explain:
		trace.WriteTree(w, trace.Joined{walk})
	default:
		io.WriteString(w, walk.Text)
	}
}

func (p *pipeline) traceAnswer(t *dataplane.Trace, text string) TraceAnswer {
	v := &t.Verdict
	a := TraceAnswer{Verdict: v.Text(t.Names), Outputs: v.Outputs, PacketIn: v.PacketIn, Waits: v.Waits, Text: text}
	if v.Waits {
		a.Table = p.tableName(v.Table)
	}
	if v.Reason != dataplane.NotDropped {
		a.Reason, a.Table = v.Reason.String(), p.tableName(v.Table)
	}
	for i := range t.Steps {
		st := &t.Steps[i]
		if st.Kind != dataplane.StepEntry {
			continue
		}
		e := TraceEntry{Table: tableName(t.Names, st.Table)}
		if st.Entry != nil {
			e.Priority, e.Match, e.Actions = st.Entry.Priority, st.Entry.Match.Text(t.Names), flow.ActionsText(st.Entry.Actions, t.Names)
			if p.objects != nil {
				e.Objects = originTexts(p.objects.OriginsOf(st.Entry)...)
			}
		}
		a.Entries = append(a.Entries, e)
	}
	return a
}

// trace walks the packet that a request describes.
func (p *pipeline) trace(r *TraceRequest) (*dataplane.Trace, error) {
	m, err := flow.ParseMatch(r.Flow, p.sw.Names())
	if err != nil {
		return nil, err
	}
	inPort, mask := m.Get(flow.InPort)
	if mask.IsZero() {
		return nil, errors.New("the flow names no in_port: a packet enters somewhere")
	}
	req := &dataplane.TraceRequest{InPort: uint32(inPort.Lo), Metadata: m}
	if req.Frame, err = r.frameOf(&m); err != nil {
		return nil, err
	}
	if err := r.answers(req); err != nil {
		return nil, err
	}
	for _, words := range r.CTNext {
		state, err := parseState(words)
		if err != nil {
			return nil, err
		}
		req.CTNext = append(req.CTNext, state)
	}
	return p.walkDry(req)
}

// walkDry walks a made-up packet, and notes with what it came.
func (p *pipeline) walkDry(r *dataplane.TraceRequest) (*dataplane.Trace, error) {
	t, err := p.sw.Trace(r)
	if err != nil {
		return nil, err
	}
	t.Live = &dataplane.Arrival{Port: r.InPort, Frame: r.Frame, Len: len(r.Frame), Offload: r.Offload, Mark: t.Start.PktMark()}
	t.Live.Tunnel.ID = flow.FieldByID(flow.TunID).Get(&t.Start).Lo
	for _, f := range []struct {
		to     *netip.Addr
		v4, v6 flow.FieldID
	}{{&t.Live.Tunnel.Src, flow.TunSrc, flow.TunIPv6Src}, {&t.Live.Tunnel.Dst, flow.TunDst, flow.TunIPv6Dst}} {
		if v := flow.FieldByID(f.v4).Get(&t.Start); !v.IsZero() {
			*f.to = v.Addr(32)
		} else if v := flow.FieldByID(f.v6).Get(&t.Start); !v.IsZero() {
			*f.to = v.Addr(128)
		}
	}
	return t, nil
}

// frameOf is the packet: as given, or as the flow, which is m, describes it.
func (r *TraceRequest) frameOf(m *flow.Match) ([]byte, error) {
	if r.Packet == "" {
		flow.AssumeFirst(m)
		return lengthen(flow.Compose(&m.Value)), nil
	}
	frame, err := hex.DecodeString(strings.Join(strings.Fields(r.Packet), ""))
	if err != nil {
		return nil, fmt.Errorf("packet: %w", err)
	}
	return frame, nil
}

// answers are what the request says of ct() actions, and of undone work.
func (r *TraceRequest) answers(req *dataplane.TraceRequest) error {
	if u := r.Undone; u != nil {
		req.Offload = packet.Offload{
			ChecksumPartial: u.ChecksumStart != 0, ChecksumStart: u.ChecksumStart, ChecksumOffset: u.ChecksumOffset, SegmentSize: u.SegmentSize,
		}
	}
	for i, c := range r.CT {
		state, err := parseState(c.State)
		if err != nil {
			return err
		}
		a := dataplane.CTAnswer{State: state, Mark: c.Mark}
		m, err := flow.ParseMatch("ct_label="+cmp.Or(c.Label, "0"), nil)
		if err != nil {
			return fmt.Errorf("ct[%d].label: %w", i, err)
		}
		label, _ := m.Get(flow.CTLabel)
		a.Label = conntrack.Label{Hi: label.Hi, Lo: label.Lo}
		if a.Src, err = parseEnd(c.Source); err == nil {
			a.Dst, err = parseEnd(c.Destination)
		}
		if err != nil {
			return fmt.Errorf("ct[%d]: %w", i, err)
		}
		req.CTAnswers = append(req.CTAnswers, a)
	}
	return nil
}

// parseEnd reads an address, or one with a port; "" is no valid one.
func parseEnd(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, 0), nil
	}
	return netip.ParseAddrPort(text)
}

// parseState reads words of ct_state, separated by "," or "|".
func parseState(words string) (conntrack.State, error) {
	m, err := flow.ParseMatch("ct_state="+strings.ReplaceAll(words, ",", "|"), nil)
	if err != nil {
		return 0, fmt.Errorf("ct-next %q: %w", words, err)
	}
	v, _ := m.Get(flow.CTState)
	return conntrack.State(v.Lo), nil
}

// fragmentLen is how many bytes a fragment that a flow describes has behind its
// headers: enough to be one that a network would bring.
const fragmentLen = 512

// lengthen gives a fragment that was composed from a flow, and so has headers
// only, bytes of a datagram. Any other frame stays as it is.
func lengthen(b []byte) []byte {
	l := packet.ParseLayers(b)
	g, ok := packet.ReadFragment(b, &l)
	if !ok || g.Len() >= fragmentLen {
		return b
	}
	b = append(b[:g.End], make([]byte, fragmentLen-g.Len())...)
	if l.EtherType == packet.EtherTypeIPv6 {
		packet.IPv6(b[l.L3:]).SetPayloadLen(uint16(len(b) - l.L3 - packet.IPv6Len))
		return b
	}
	h := packet.IPv4(b[l.L3:])
	h.SetTotalLen(uint16(len(h)))
	h.UpdateChecksum()
	return b
}
