package agent

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
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
	var text bytes.Buffer
	if err == nil {
		err = t.WriteText(&text)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.json:
		writeJSON(w, p.traceAnswer(t, text.String()), nil)
	default:
		w.Write(text.Bytes())
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
	if r.Packet != "" {
		if req.Frame, err = hex.DecodeString(strings.Join(strings.Fields(r.Packet), "")); err != nil {
			return nil, fmt.Errorf("packet: %w", err)
		}
	} else {
		assumeFirst(&m)
		req.Frame = lengthen(flow.Compose(&m.Value))
	}
	for _, words := range r.CTNext {
		state, err := parseState(words)
		if err != nil {
			return nil, err
		}
		req.CTNext = append(req.CTNext, state)
	}
	return p.sw.Trace(req)
}

// clientPort is any port that a client might have.
const clientPort = 40000

// assumeFirst fills in what a packet that begins a connection has, where the
// flow does not say. A TTL or port of 0, or TCP without any flag, is never meant.
func assumeFirst(m *flow.Match) {
	etherType, _ := m.Get(flow.EthType)
	proto, _ := m.Get(flow.IPProto)
	isIP := etherType.Lo == packet.EtherTypeIPv4 || etherType.Lo == packet.EtherTypeIPv6
	for _, d := range []struct {
		field flow.FieldID
		when  bool
		value uint64
	}{
		{flow.IPTTL, isIP, 64},
		{flow.TCPSrc, isIP && proto.Lo == packet.ProtoTCP, clientPort},
		{flow.UDPSrc, isIP && proto.Lo == packet.ProtoUDP, clientPort},
		{flow.TCPFlags, isIP && proto.Lo == packet.ProtoTCP, packet.TCPSyn},
		{flow.ICMPType, etherType.Lo == packet.EtherTypeIPv4 && proto.Lo == packet.ProtoICMP, packet.ICMPEcho},
		{flow.ICMPv6Type, etherType.Lo == packet.EtherTypeIPv6 && proto.Lo == packet.ProtoICMPv6, packet.ICMPv6Echo},
	} {
		if _, mask := m.Get(d.field); d.when && mask.IsZero() {
			m.AddExact(d.field, flow.Value{Lo: d.value})
		}
	}
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
