package dut_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dut"
	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The vectors of conntrack, end to end: each one's flow table is loaded by a
// reset, its packets go in as hex, and what leaves the taps is compared with
// what Open vSwitch 3.1 sent, or, where a step says "ours", with what we mean
// to do instead. The tables write ct_state, zone, mark and label over the MAC
// addresses, so that the taps show them.

func TestVectors(t *testing.T) {
	shown, replayed := map[string]bool{}, 0
	for _, v := range ctvectors.Load(t, "../conntrack/testdata/vectors") {
		for i := range v.Steps {
			for _, d := range v.Steps[i].Reasons() {
				shown[d] = true
			}
		}
		t.Run(v.Name, func(t *testing.T) { replay(t, v) })
		replayed++
		v6, err := v.V6()
		if err != nil {
			t.Error(err)
		}
		if v6 != nil {
			t.Run(v6.Name, func(t *testing.T) { replay(t, v6) })
			replayed++
		}
	}
	if replayed < 75 {
		t.Errorf("only %d vectors were replayed", replayed)
	}
	for _, d := range ctvectors.Divergences {
		if !shown[d] {
			t.Errorf("no vector shows %s", d)
		}
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
	d, err := dut.New(proto.OVSTimeouts(), walktest.Cache())
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

func replay(t *testing.T, v *ctvectors.Vector) {
	p := newPeer(t)
	p.must(map[string]any{"op": "reset", "flows": v.Flows})
	var last []byte // the last frame seen on a tap, MAC addresses cleared
	for i := range v.Steps {
		s := &v.Steps[i]
		name := fmt.Sprintf("step %d (%s %s)", i, s.Op, s.Note)
		switch s.Op {
		case "rx", "reply":
			got := p.receive(s, &last)
			if err := v.Compare(got, s.Want()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case "warp":
			p.must(map[string]any{"op": "warp", "ms": s.MS})
		case "ct":
			if got, want := v.Masked(p.connections()), v.Masked(s.WantCT()); !slices.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		case "ctl":
			if a := p.must(map[string]any{"op": "ctl", "args": s.Args}); s.Text != "" && a.Ctl != s.Text {
				t.Errorf("%s: %q, want %q", name, a.Ctl, s.Text)
			}
		default:
			t.Fatalf("%s: no such op", name)
		}
	}
}

// receive gives the device a step's frame, or the answer to the last one that
// was seen on a tap, and says what left the taps.
func (p *peer) receive(s *ctvectors.Step, last *[]byte) []ctvectors.Output {
	p.Helper()
	b := stepFrame(p.TB, s, *last)
	got := taps(p.TB, p.must(map[string]any{"op": "rx", "port": s.Port, "hex": hex.EncodeToString(b)}).Out)
	if len(got) > 0 {
		*last = frameOf(p.TB, got[len(got)-1])
	}
	return got
}

// stepFrame is the frame of a step.
func stepFrame(t testing.TB, s *ctvectors.Step, last []byte) []byte {
	t.Helper()
	if s.Op == "reply" {
		return packettest.Answer(last, s.Flags)
	}
	b, err := hex.DecodeString(s.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// connections is the device's dump, in order.
func (p *peer) connections() []string {
	p.Helper()
	lines := p.must(map[string]any{"op": "ct"}).CT
	slices.Sort(lines)
	return lines
}

// taps reads the frames that left: what was written over their MAC addresses,
// and the rest.
func taps(t testing.TB, out map[uint32][]string) (list []ctvectors.Output) {
	t.Helper()
	for _, port := range slices.Sorted(maps.Keys(out)) {
		for _, text := range out[port] {
			b, err := hex.DecodeString(text)
			if err != nil || len(b) < packet.EthernetLen {
				t.Fatalf("%q left by port %d", text, port)
			}
			list = append(list, ctvectors.Output{
				Tap: port, Zone: binary.BigEndian.Uint16(b), Mark: fmt.Sprintf("%#x", binary.BigEndian.Uint32(b[2:])),
				Label: fmt.Sprintf("%#x", binary.BigEndian.Uint32(b[6:])),
				State: ctvectors.StateText(uint32(binary.BigEndian.Uint16(b[10:]))), Hex: text[24:],
			})
		}
	}
	return list
}
