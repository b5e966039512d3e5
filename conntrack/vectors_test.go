package conntrack

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The vectors whose flow table is one of three simple ones, which this test
// walks itself, as recorded and as IPv6. Package dut replays all of them.

func TestVectors(t *testing.T) {
	walked := 0
	for _, v := range ctvectors.Load(t, "testdata/vectors") {
		if v.Pipeline == nil {
			continue
		}
		t.Run(v.Name, func(t *testing.T) { newReplay(t, v).run() })
		walked++
		if v6, err := v.V6(); err != nil {
			t.Error(err)
		} else if v6 != nil {
			t.Run(v6.Name, func(t *testing.T) { newReplay(t, v6).run() })
			walked++
		}
	}
	if walked < 46 {
		t.Errorf("only %d vectors have a pipeline", walked)
	}
}

// replay is a vector being run.
type replay struct {
	*testing.T
	v     *ctvectors.Vector
	table *Table
	now   int64
	last  []byte // the last frame seen on a tap
}

func newReplay(t *testing.T, v *ctvectors.Vector) *replay {
	r := &replay{T: t, v: v}
	r.table = NewTable(Config{
		Now: func() int64 { return r.now }, Timeouts: proto.OVSTimeouts(), Max: 1 << 16, Seed: [2]uint64{1, 2},
	})
	return r
}

func (r *replay) run() {
	for i, s := range r.v.Steps {
		name := fmt.Sprintf("step %d (%s %s)", i, s.Op, s.Note)
		switch s.Op {
		case "rx", "reply":
			r.compare(name, &s, r.receive(&s))
		case "warp":
			r.now += s.MS * int64(time.Millisecond)
		case "ct":
			r.compareDump(name, &s)
		case "ctl":
			if got := r.control(s.Args); s.Text != "" && got != s.Text {
				r.Errorf("%s: %q, want %q", name, got, s.Text)
			}
		}
	}
}

func (r *replay) receive(s *ctvectors.Step) []ctvectors.Output {
	var b []byte
	if s.Op == "reply" {
		b = packettest.Answer(r.last, s.Flags)
	} else {
		b, _ = hex.DecodeString(s.Hex)
	}
	out := r.walk(b, s.Port)
	if len(out) > 0 {
		tail, _ := hex.DecodeString(out[len(out)-1].Hex)
		r.last = append(make([]byte, 12), tail...)
	}
	return out
}

// walk is the three pipelines.
func (r *replay) walk(b []byte, port uint32) (out []ctvectors.Output) {
	f := packet.NewFrame(make([]byte, 4096), nil)
	f.SetBytes(b)
	l := packet.ParseLayers(f.Bytes())
	if ttlZero(f.Bytes(), &l) { // the switch drops it before the first table (D19)
		return nil
	}
	var m Meta
	tap := func(n int) {
		out = append(out, ctvectors.Output{
			Tap: uint32(n), Zone: m.Zone, Mark: fmt.Sprintf("%#x", m.Mark), Label: fmt.Sprintf("%#x", m.Label.Lo),
			State: stateText(m.State), Hex: hex.EncodeToString(f.Bytes()[12:]),
		})
	}
	p := r.v.Pipeline
	lookup := Request{Zone: p.Zone}
	commit := Request{Zone: p.Zone, Commit: true}
	if p.Kind == "nat" {
		lookup.NAT, commit.NAT = &NAT{}, parseNAT(p.NAT)
		commit.Mark, commit.MarkMask = 0x10, 0xffffffff
	}
	if r.table.Track(f, &l, &m, &lookup, r.now).Drop != DropNone {
		r.Fatal("a lookup dropped the packet")
	}
	if p.Kind != "lookup" {
		tap(11)
		if m.State&New != 0 && (p.Kind == "basic" || port == 1) {
			if r.table.Track(f, &l, &m, &commit, r.now).Drop != DropNone {
				return out
			}
		}
	}
	tap(12)
	return out
}

// ttlZero says whether a packet came with TTL or hop limit 0.
func ttlZero(b []byte, l *packet.Layers) bool {
	switch {
	case l.End == 0:
		return false
	case l.EtherType == packet.EtherTypeIPv4:
		return packet.IPv4(b[l.L3:]).TTL() == 0
	case l.EtherType == packet.EtherTypeIPv6:
		return packet.IPv6(b[l.L3:]).HopLimit() == 0
	}
	return false
}

// compare checks one packet's outputs.
func (r *replay) compare(name string, s *ctvectors.Step, got []ctvectors.Output) {
	r.Helper()
	if err := r.v.Compare(got, s.Want()); err != nil {
		r.Errorf("%s: %v", name, err)
	}
}

func (r *replay) compareDump(name string, s *ctvectors.Step) {
	r.Helper()
	got := []string{}
	for c := range r.table.Dump(Filter{}) {
		got = append(got, c.Verbose())
	}
	slices.Sort(got)
	if got, want := r.v.Masked(got), r.v.Masked(s.WantCT()); !slices.Equal(got, want) {
		r.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// control is the commands of ovs-appctl that the vectors use.
func (r *replay) control(args []string) string {
	var zone uint16
	var limit uint32
	for _, a := range args[1:] {
		fmt.Sscanf(a, "zone=%d,limit=%d", &zone, &limit)
	}
	switch args[0] {
	case "dpctl/ct-disable-tcp-seq-chk":
		r.table.SetSequenceCheck(false)
	case "dpctl/ct-set-limits":
		r.table.SetLimit(zone, limit)
	case "dpctl/ct-del-limits":
		r.table.DelLimit(zone)
	case "dpctl/ct-set-maxconns":
		n, _ := strconv.Atoi(args[1])
		r.table.SetMax(n)
	case "dpctl/ct-get-limits":
		byDefault, zones := r.table.Limits()
		text := fmt.Sprintf("default limit=%d\n", byDefault)
		for _, z := range zones {
			text += fmt.Sprintf("zone=%d,limit=%d,count=%d\n", z.Zone, z.Limit, z.Count)
		}
		return text
	default:
		r.Fatalf("unknown command %v", args)
	}
	return ""
}

// stateText is ct_state as the vectors write it.
func stateText(s State) string { return ctvectors.StateText(uint32(s)) }

// parseNAT reads "dst=10.0.0.2:8080", "src=10.9.9.9:5000-5001" and
// "dst=[fd00::2]:8080".
func parseNAT(s string) *NAT {
	kind, rest, _ := strings.Cut(s, "=")
	n := &NAT{Source: kind == "src", Destination: kind == "dst"}
	host, ports := rest, ""
	_, bare := netip.ParseAddr(rest)
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && bare != nil {
		host, ports = rest[:i], rest[i+1:]
	}
	n.AddrMin = netip.MustParseAddr(strings.Trim(host, "[]"))
	n.AddrMax = n.AddrMin
	if ports != "" {
		low, high, ranged := strings.Cut(ports, "-")
		if !ranged {
			high = low
		}
		a, _ := strconv.ParseUint(low, 10, 16)
		b, _ := strconv.ParseUint(high, 10, 16)
		n.PortMin, n.PortMax = uint16(a), uint16(b)
	}
	return n
}
