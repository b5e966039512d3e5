package conntrack

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The vectors in testdata/vectors are packets and Open vSwitch 3.1's answers
// to them, recorded from its userspace datapath. Where a step has "ours", we
// mean to differ, for the reason in "diverges" (D1 to D13 of the
// specification); each such answer was read and agreed to beside Open
// vSwitch's.
//
// A vector names its flow table twice: as flows, for a whole switch to load,
// and, where it is one of three simple ones, as a pipeline, which this test
// walks itself.
type vector struct {
	Name, Doc string
	Flows     []string
	Pipeline  *pipeline
	Alloc     []int // ports that NAT may choose freely, and so differently
	Steps     []step
}

// pipeline names one of three flow tables that the recordings were made with.
// All end in tap 12; basic and nat show what the lookup said on tap 11.
//
//	lookup  ct(zone), tap 12
//	basic   ct(zone), tap 11; +new: ct(commit,zone); tap 12
//	nat     ct(zone,nat), tap 11; +new from port 1: ct(commit,zone,nat(NAT),exec(set_field:0x10->ct_mark)); tap 12
type pipeline struct {
	Kind string
	Zone uint16
	NAT  string
}

type step struct {
	Op, Note, Hex, Text string
	Port                uint32
	Flags               uint16 // of the answer, for op reply
	MS                  int64
	Args                []string
	OVS, Ours           []output
	CT, OursCT          []string
	Diverges            string
}

// output is a packet on a tap. Hex is the frame from its EtherType on.
type output struct {
	Tap         int
	Zone        uint16
	Mark, Label string
	State, Hex  string
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	walked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if v.Pipeline != nil {
			t.Run(v.Name, func(t *testing.T) { newReplay(t, &v).run() })
			walked++
		}
	}
	if walked < 24 {
		t.Errorf("only %d vectors have a pipeline", walked)
	}
}

// replay is a vector being run.
type replay struct {
	*testing.T
	v     *vector
	table *Table
	now   int64
	last  []byte // the last frame seen on a tap
}

func newReplay(t *testing.T, v *vector) *replay {
	r := &replay{T: t, v: v}
	r.table = NewTable(Config{
		Now: func() int64 { return r.now }, Timeouts: OVSTimeouts(), Max: 1 << 16, Seed: [2]uint64{1, 2},
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

func (r *replay) receive(s *step) []output {
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
func (r *replay) walk(b []byte, port uint32) (out []output) {
	f := packet.NewFrame(make([]byte, 4096), nil)
	f.SetBytes(b)
	l := packet.ParseLayers(f.Bytes())
	var m Meta
	tap := func(n int) {
		out = append(out, output{
			n, m.Zone, fmt.Sprintf("%#x", m.Mark), fmt.Sprintf("%#x", m.Label.Lo),
			stateText(m.State), hex.EncodeToString(f.Bytes()[12:]),
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

// compare checks one packet's outputs. A port that NAT chose is masked.
func (r *replay) compare(name string, s *step, got []output) {
	r.Helper()
	want := s.OVS
	if s.Ours != nil {
		want = s.Ours
	}
	for i := range min(len(got), len(want)) {
		if r.v.Alloc != nil {
			got[i].Hex, want[i].Hex = "", ""
		}
		if got[i] != want[i] {
			r.Errorf("%s:\n got %+v\nwant %+v", name, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		r.Errorf("%s: %d outputs, want %d", name, len(got), len(want))
	}
}

func (r *replay) compareDump(name string, s *step) {
	r.Helper()
	got := []string{}
	for c := range r.table.Dump(Filter{}) {
		got = append(got, c.Verbose())
	}
	slices.Sort(got)
	want := s.CT
	if s.OursCT != nil {
		want = s.OursCT
	}
	if r.v.Alloc != nil {
		got, want = maskPorts(got, r.v.Alloc), maskPorts(want, r.v.Alloc)
	}
	if !slices.Equal(got, want) {
		r.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// maskPorts hides which of the ports NAT chose.
func maskPorts(lines []string, alloc []int) []string {
	out := slices.Clone(lines)
	for i := range out {
		for p := alloc[0]; p <= alloc[1]; p++ {
			out[i] = strings.ReplaceAll(out[i], "port="+strconv.Itoa(p), "port=@")
		}
	}
	return out
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

var stateNames = []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}

// stateText is ct_state as the vectors write it.
func stateText(s State) string {
	var names []string
	for i, n := range stateNames {
		if s>>i&1 != 0 {
			names = append(names, n)
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, "|")
}

// parseNAT reads "dst=10.0.0.2:8080", "src=10.9.9.9:5000-5001" and
// "dst=[fd00::2]:8080".
func parseNAT(s string) *NAT {
	kind, rest, _ := strings.Cut(s, "=")
	n := &NAT{Source: kind == "src", Destination: kind == "dst"}
	host, ports := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
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
