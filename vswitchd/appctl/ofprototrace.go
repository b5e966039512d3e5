package appctl

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// traceUsage is the usage of ofproto/trace in list-commands.
const traceUsage = "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]"

// traceArguments are the arguments of ofproto/trace.
type traceArguments struct {
	words  []string // the bridge, the flow, and a packet or -generate
	names  bool
	ctNext []conntrack.State
}

// readTraceArguments separates options from words.
func readTraceArguments(args []string) (t traceArguments, err error) {
	t.ctNext = []conntrack.State{}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; a {
		case "--names":
			t.names = true
		case "--no-names":
			t.names = false
		case "-consistent", "--consistent":
		case "--ct-next":
			if i++; i == len(args) {
				return t, errors.New("Missing argument for option --ct-next") //lint:ignore ST1005 as Open vSwitch words it
			}
			s, err := readState(args[i])
			if err != nil {
				return t, err
			}
			t.ctNext = append(t.ctNext, s)
		default:
			if strings.HasPrefix(a, "--") {
				return t, fmt.Errorf("%s: unknown option", a)
			}
			t.words = append(t.words, a)
		}
	}
	return t, nil
}

// readState reads words of ct_state, as "trk,new".
func readState(text string) (s conntrack.State, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		i := slices.Index(flow.CTStateBits.Flags(), word)
		if i < 0 {
			return 0, fmt.Errorf("%s: unknown connection tracking state flag", word)
		}
		s |= 1 << i
	}
	return s, nil
}

// runTrace is ofproto/trace.
func (s *Switch) runTrace(_ context.Context, args []string) (string, error) {
	a, err := readTraceArguments(args)
	if err != nil {
		return "", err
	}
	bridge := a.words[:min(1, len(a.words))]
	if len(a.words) < 2 {
		return "", fmt.Errorf("syntax error at %s (or the bridge name was omitted)", strings.Join(bridge, ""))
	}
	if a.words[0] != s.Bridge() {
		return "", fmt.Errorf("%s: unknown bridge", a.words[0])
	}
	req, err := s.traceRequest(&a)
	if err != nil {
		return "", err
	}
	return s.traceText(req, &a)
}

// traceRequest makes the packet of a trace.
func (s *Switch) traceRequest(a *traceArguments) (*telemetry.TraceRequest, error) {
	m, err := parse.Match(a.words[1], s.portNames())
	if err != nil {
		return nil, fmt.Errorf("Bad openflow flow syntax: %s: %w", a.words[1], err) //lint:ignore ST1005 as Open vSwitch words it
	}
	req := &telemetry.TraceRequest{InPort: m.Value.InPort(), Frame: flow.Compose(&m.Value), Metadata: m, CTNext: a.ctNext}
	if len(a.words) > 2 && a.words[2] != "-generate" {
		if req.Frame, err = hex.DecodeString(strings.ReplaceAll(a.words[2], " ", "")); err != nil {
			return nil, errors.New("Trailing garbage in packet data") //lint:ignore ST1005 as Open vSwitch words it
		}
		if len(req.Frame) < packet.EthernetLen {
			return nil, errors.New("Packet data too short for Ethernet") //lint:ignore ST1005 as Open vSwitch words it
		}
	}
	return req, nil
}

// maxTraces is the largest depth of passes: the walk's own limit of nested tables.
const maxTraces = 64

// traceText is the output of the command for a packet. The states of --ct-next are for the passes in
// the order of printing, but a walk enters each pass at once. So the packet is traced again until
// each pass has its state. Each trace settles one more level of passes.
func (s *Switch) traceText(req *telemetry.TraceRequest, a *traceArguments) (string, error) {
	t := s.tracer(a)
	for range maxTraces {
		tr, err := s.Switch.Trace(req)
		if err != nil {
			return "", err
		}
		t.frames, t.all, t.answers, t.resume, t.last = nil, nil, 0, nil, nil
		first := t.readPasses(tr)
		states := t.passStates(first, a.ctNext)
		if slices.Equal(states, req.CTNext) {
			return writePasses(first, s.Bridge(), t.names), nil
		}
		req.CTNext = states
	}
	return "", fmt.Errorf("the packet passes more than %d ct() behind each other", maxTraces)
}

// tracer is what a trace is read with.
func (s *Switch) tracer(a *traceArguments) *tracer {
	t := &tracer{groups: map[uint32]*flow.Group{}, learned: map[macOfVLAN]uint32{}}
	if a.names {
		t.names = s.portNames()
	}
	for _, g := range s.Switch.Groups() {
		t.groups[g.ID] = g.Group
	}
	for _, l := range s.Switch.LearnedMACs() {
		var k flow.Key
		copy(k[flow.FieldByID(flow.EthDst).Off:], l.MAC[:])
		t.learned[macOfVLAN{get(&k, flow.EthDst), l.VLAN}] = l.Port
	}
	return t
}
