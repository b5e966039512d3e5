package pipeline

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// MaxTraceRequest bounds the body of a request.
const MaxTraceRequest = 1 << 20

// Trace walks the packet that a request describes.
func (p *Pipeline) Trace(r *api.TraceRequest) (*telemetry.Trace, error) {
	m, err := parse.Match(r.Flow, p.Switch.Names())
	if err != nil {
		return nil, err
	}
	inPort, mask := m.Get(flow.InPort)
	if mask.IsZero() {
		return nil, errors.New("the flow has no in_port: give the port where the packet enters")
	}
	req := &telemetry.TraceRequest{InPort: uint32(inPort.Lo), Metadata: m}
	if req.Frame, err = frameOf(r, &m); err != nil {
		return nil, err
	}
	if err := ctAnswers(r, req); err != nil {
		return nil, err
	}
	for _, words := range r.CTNext {
		state, err := parseState(words)
		if err != nil {
			return nil, err
		}
		req.CTNext = append(req.CTNext, state)
	}
	return p.WalkDry(req)
}

// WalkDry walks a made-up packet, and adds how it arrived. The error is the switch's.
func (p *Pipeline) WalkDry(r *telemetry.TraceRequest) (*telemetry.Trace, error) {
	t, err := p.Switch.Trace(r)
	if err != nil {
		return nil, err
	}
	t.Live = &telemetry.Arrival{Port: r.InPort, Frame: r.Frame, Len: len(r.Frame), Offload: r.Offload, Mark: t.Start.PktMark()}
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

// frameOf is the packet: the request's, or one that the flow m describes.
func frameOf(r *api.TraceRequest, m *flow.Match) ([]byte, error) {
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

// ctAnswers converts the request's answers of ct() actions, and its undone work.
func ctAnswers(r *api.TraceRequest, req *telemetry.TraceRequest) error {
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
		a := telemetry.CTAnswer{State: state, Mark: c.Mark}
		m, err := parse.Match("ct_label="+cmp.Or(c.Label, "0"), nil)
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

// parseEnd parses an address, with or without a port. "" gives an address that is not valid.
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
	m, err := parse.Match("ct_state="+strings.ReplaceAll(words, ",", "|"), nil)
	if err != nil {
		return 0, fmt.Errorf("ct-next %q: %w", words, err)
	}
	v, _ := m.Get(flow.CTState)
	return conntrack.State(v.Lo), nil
}

// fragmentLen is the payload of a made-up fragment in bytes: as much as a fragment in a real
// network has.
const fragmentLen = 512

// lengthen adds payload to a fragment that was composed from a flow, and so has headers only.
// Other frames stay as they are.
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
