package dut_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dut"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The vectors of conntrack, end to end: each one's flow table is loaded by a
// reset, its packets go in as hex, and what leaves the taps is compared with
// what Open vSwitch 3.1 sent, or, where a step says "ours", with what we mean
// to do instead. The tables write ct_state, zone, mark and label over the MAC
// addresses, so that the taps show them.

// vector is a recording; conntrack's vectors_test.go tells of its fields.
type vector struct {
	Name  string
	Flows []string
	Alloc []int // ports that NAT may choose freely, and so differently
	Steps []step
}

type step struct {
	Op, Note, Hex, Text string
	Port                uint32
	Flags               uint16 // of the answer, for op reply
	MS                  int64
	Args                []string
	OVS, Ours           []tapped
	CT, OursCT          []string
	Diverges            string
}

// tapped is a frame on a tap. Hex is the frame from its EtherType on.
type tapped struct {
	Tap         uint32
	Zone        uint16
	Mark, Label string
	State, Hex  string
}

// diverges lists where we mean to differ from Open vSwitch, by vector and the
// note of the step ("" for dumps): the reasons are those of conntrack's D1 to
// D13. A vector that says "ours" anywhere else fails.
var diverges = map[string][]string{
	"frag":               {"overlap", "non-last below 1200", "any packet after 15 s"},
	"icmp6-related-dnat": {"unreach from the endpoint", "packet too big"},
	"limit-max":          {"2: table full"},
	"limit-zone":         {"3 over the limit"},
	"midstream-poison":   {"server first", "client", "server again", ""},
	"nat-dnat-noport":    {"sctp", ""},
	"nat-dnat-sctp-port": {"sctp", "reply", ""},
	"nat-icmp-id-clash":  {"c2 same id", ""},
	"nat-snat":           {"icmp c2 same id", ""},
	"nat-snat-range":     {"3 exhausted"},
	"sctp":               {"b other ports", "reply", ""},
	"sctp-port-bypass":   {"denied port again"},
	"tcp-flags":          {"flags R", "flags RA"},
	"tcp-pickup":         {"2nd same dir", "RST, no entry", "RST/ACK, no entry", "FIN/ACK, no entry", ""},
	"tcp-rst-exact":      {"SYN after RST", ""},
	"tcp-window": {"data 70000 ahead", "ack 70000 ahead", "data at the window edge", "RST in window",
		"SYN on established", "SYN in window", ""},
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../conntrack/testdata/vectors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	replayed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(v.Name, func(t *testing.T) { replay(t, &v) })
		replayed++
	}
	if replayed < 38 {
		t.Errorf("only %d vectors were replayed", replayed)
	}
}

// peer is the program at the other end of Serve's pipes.
type peer struct {
	testing.TB
	in    io.Writer
	lines *bufio.Scanner
}

// newPeer starts a device that serves until the test ends.
func newPeer(t testing.TB) *peer {
	t.Helper()
	d, err := dut.New(conntrack.OVSTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- d.Serve(requests, answers) }()
	t.Cleanup(func() {
		in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &peer{t, in, lines}
}

// answer is what the device says to one request.
type answer struct {
	Out   map[uint32][]string
	CT    []string
	Ctl   string
	Error string
}

// line sends one line and reads the answer.
func (p *peer) line(request []byte) (a answer) {
	p.Helper()
	if _, err := p.in.Write(append(request, '\n')); err != nil {
		p.Fatal(err)
	}
	if !p.lines.Scan() {
		p.Fatalf("no answer to %s", request)
	}
	if err := json.Unmarshal(p.lines.Bytes(), &a); err != nil {
		p.Fatalf("answer %q: %v", p.lines.Text(), err)
	}
	return a
}

// must sends a request that the device must be able to do.
func (p *peer) must(request map[string]any) answer {
	p.Helper()
	b, err := json.Marshal(request)
	if err != nil {
		p.Fatal(err)
	}
	a := p.line(b)
	if a.Error != "" {
		p.Fatalf("%s: %s", b, a.Error)
	}
	return a
}

func replay(t *testing.T, v *vector) {
	p := newPeer(t)
	p.must(map[string]any{"op": "reset", "flows": v.Flows})
	var last []byte // the last frame seen on a tap, MAC addresses cleared
	for i := range v.Steps {
		s := &v.Steps[i]
		name := fmt.Sprintf("step %d (%s %s)", i, s.Op, s.Note)
		if (s.Ours != nil || s.OursCT != nil) && !slices.Contains(diverges[v.Name], s.Note) {
			t.Errorf("%s: the vector has an answer of ours, but no divergence is listed", name)
		}
		switch s.Op {
		case "rx", "reply":
			if s.Op == "reply" {
				s.Hex = hex.EncodeToString(packettest.Answer(last, s.Flags))
			}
			got := taps(t, p.must(map[string]any{"op": "rx", "port": s.Port, "hex": s.Hex}).Out)
			if len(got) > 0 {
				tail, _ := hex.DecodeString(got[len(got)-1].Hex)
				last = append(make([]byte, 12), tail...)
			}
			compare(t, name, got, wanted(s.Ours, s.OVS), v.Alloc)
		case "warp":
			p.must(map[string]any{"op": "warp", "ms": s.MS})
		case "ct":
			got := p.must(map[string]any{"op": "ct"}).CT
			slices.Sort(got)
			compare(t, name, masked(got, v.Alloc), masked(wanted(s.OursCT, s.CT), v.Alloc), nil)
		case "ctl":
			if a := p.must(map[string]any{"op": "ctl", "args": s.Args}); s.Text != "" && a.Ctl != s.Text {
				t.Errorf("%s: %q, want %q", name, a.Ctl, s.Text)
			}
		default:
			t.Fatalf("%s: no such op", name)
		}
	}
}

// wanted is our own answer where there is one, else Open vSwitch's.
func wanted[T any](ours, ovs []T) []T {
	if ours != nil {
		return ours
	}
	return ovs
}

// taps reads the frames that left: what was written over their MAC addresses,
// and the rest.
func taps(t *testing.T, out map[uint32][]string) (list []tapped) {
	t.Helper()
	for _, port := range slices.Sorted(maps.Keys(out)) {
		for _, text := range out[port] {
			b, err := hex.DecodeString(text)
			if err != nil || len(b) < packet.EthernetLen {
				t.Fatalf("%q left by port %d", text, port)
			}
			list = append(list, tapped{
				port, binary.BigEndian.Uint16(b), fmt.Sprintf("%#x", binary.BigEndian.Uint32(b[2:])),
				fmt.Sprintf("%#x", binary.BigEndian.Uint32(b[6:])), stateText(binary.BigEndian.Uint16(b[10:])), text[24:],
			})
		}
	}
	return list
}

// compare fails on the first difference. Where NAT chose a port, the frames'
// bytes are not compared.
func compare[T comparable](t *testing.T, name string, got, want []T, alloc []int) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || blind(got[i], alloc) != blind(want[i], alloc) {
			t.Errorf("%s, at %d:\n got %+v\nwant %+v", name, i, got, want)
			return
		}
	}
}

// blind hides the bytes of a frame when NAT chose its ports.
func blind[T comparable](v T, alloc []int) any {
	if f, ok := any(v).(tapped); ok && alloc != nil {
		f.Hex = ""
		return f
	}
	return v
}

// masked hides which of the ports NAT chose in lines of a dump.
func masked(lines []string, alloc []int) []string {
	out := slices.Clone(lines)
	for i := range out {
		if alloc == nil {
			break
		}
		for p := alloc[0]; p <= alloc[1]; p++ {
			out[i] = strings.ReplaceAll(out[i], "port="+strconv.Itoa(p), "port=@")
		}
	}
	return out
}

var stateNames = []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}

// stateText is ct_state as the vectors write it.
func stateText(state uint16) string {
	var names []string
	for i, n := range stateNames {
		if state>>i&1 != 0 {
			names = append(names, n)
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, "|")
}
