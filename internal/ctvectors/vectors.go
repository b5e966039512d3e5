// Package ctvectors reads the test vectors of connection tracking: packets, and the recorded
// answers of Open vSwitch 3.1's userspace datapath. They live in conntrack/testdata/vectors.
// Package conntrack replays those with a simple pipeline. Package dut replays all of them through
// a whole switch. Both also replay them as IPv6 (v6.go).
package ctvectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Vector is a scenario. It has its flow table as flows, for a whole switch. If the table is one
// of three simple ones, it also has it as a Pipeline.
type Vector struct {
	Name, Doc string
	Flows     []string
	Pipeline  *Pipeline
	Alloc     []int // ports that NAT may choose differently
	Steps     []Step
}

// Pipeline names one of three recorded flow tables. All end in tap 12; basic and nat show the
// result of the lookup on tap 11.
//
//	lookup  ct(zone), tap 12
//	basic   ct(zone), tap 11; +new: ct(commit,zone); tap 12
//	nat     ct(zone,nat), tap 11; +new from port 1: ct(commit,zone,nat(NAT),exec(set_field:0x10->ct_mark)); tap 12
type Pipeline struct {
	Kind string
	Zone uint16
	NAT  string
}

// Step is one event. Its operation is one of:
//
//   - rx: a frame comes in
//   - reply: the answer to the last frame seen on a tap
//   - warp: the clock advances
//   - ct: the connections are compared
//   - ctl: a command of ovs-appctl
type Step struct {
	Op, Note, Hex, Text string
	Port                uint32
	Flags               uint16 // of the answer, for op reply
	MS                  int64
	Args                []string
	// OVS and CT are Open vSwitch's answers. Ours and OursCT are answers that differ on purpose,
	// for the reason in Diverges.
	OVS, Ours  []Output
	CT, OursCT []string
	Diverges   string
}

// Output is a packet on a tap. Hex is the frame from its EtherType on.
type Output struct {
	Tap         uint32
	Zone        uint16
	Mark, Label string
	State, Hex  string
}

// Want is the expected output of the taps.
func (s *Step) Want() []Output {
	if s.Ours != nil {
		return s.Ours
	}
	return s.OVS
}

// WantCT is the expected connections.
func (s *Step) WantCT() []string {
	if s.OursCT != nil {
		return s.OursCT
	}
	return s.CT
}

// Load reads all vectors of a directory. Each answer of ours must differ from Open vSwitch's, and
// name one of the reasons of Divergences.
func Load(t testing.TB, dir string) (all []*Vector) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := &Vector{}
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range v.Steps {
			if err := v.Steps[i].check(); err != nil {
				t.Errorf("%s, step %d: %v", file, i, err)
			}
		}
		all = append(all, v)
	}
	return all
}

// Divergences are the numbered reasons for answers that differ from Open vSwitch. RULES.md of
// package conntrack explains each.
var Divergences = []string{"D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12", "D13", "D14", "D15", "D16", "D17", "D18", "D19"}

// Reasons are the numbers in Diverges: "D1/D2", "D3-D5".
func (s *Step) Reasons() (all []string) {
	for _, part := range strings.FieldsFunc(s.Diverges, func(r rune) bool { return r == '/' || r == ',' || r == ' ' }) {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		var from, to int
		if _, err := fmt.Sscanf(low+" "+high, "D%d D%d", &from, &to); err != nil {
			all = append(all, part)
			continue
		}
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("D%d", n))
		}
	}
	return all
}

// Differs says whether the step has an answer of ours.
func (s *Step) Differs() bool { return s.Ours != nil || s.OursCT != nil }

func (s *Step) check() error {
	if !s.Differs() {
		if s.Diverges != "" {
			return fmt.Errorf("%s, but there is no answer of ours", s.Diverges)
		}
		return nil
	}
	if s.Ours != nil && reflect.DeepEqual(s.Ours, s.OVS) || s.OursCT != nil && reflect.DeepEqual(s.OursCT, s.CT) {
		return fmt.Errorf("our answer is the same as Open vSwitch's")
	}
	known := map[string]bool{}
	for _, d := range Divergences {
		known[d] = true
	}
	if len(s.Reasons()) == 0 {
		return fmt.Errorf("our answer differs without a reason")
	}
	for _, r := range s.Reasons() {
		if !known[r] {
			return fmt.Errorf("%q is not one of the reasons of Divergences", r)
		}
	}
	return nil
}

var stateNames = []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}

// StateText is ct_state as the vectors write it.
func StateText(state uint32) string {
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

// Masked replaces the ports that NAT chose in lines of a dump.
func (v *Vector) Masked(lines []string) []string {
	if v.Alloc == nil {
		return lines
	}
	var out []string
	for _, l := range lines {
		for p := v.Alloc[0]; p <= v.Alloc[1]; p++ {
			l = strings.ReplaceAll(l, fmt.Sprintf("port=%d", p), "port=@")
		}
		out = append(out, l)
	}
	return out
}

// Compare compares the outputs of one packet, and returns the first difference. If NAT chose a
// port, the frames' bytes are not compared.
func (v *Vector) Compare(got, want []Output) error {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Errorf("%d outputs, want %d:\n got %+v\nwant %+v", len(got), len(want), got, want)
		}
		g, w := got[i], want[i]
		if v.Alloc != nil {
			g.Hex, w.Hex = "", ""
		}
		if g != w {
			return fmt.Errorf("output %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
	return nil
}
