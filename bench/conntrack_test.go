package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
)

// A small measurement: every figure of antrail's side is there, and of Open
// vSwitch's where it is installed.
func TestCompareConntrack(t *testing.T) {
	o := ConntrackOptions{Rounds: 1, Entries: 20_000, Packets: 2000}
	c, err := CompareConntrack(context.Background(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.Lines {
		if s := l.Reached[0]; (s == nil && l.Unit != millions) || s != nil && s.Rounds != 1 { // a rate may be lost among others' work
			t.Errorf("%s: %v", l.Name, s)
		}
	}
	if missing := ovsMissing(); missing != nil {
		if len(c.Sides) != 1 || !strings.Contains(strings.Join(c.Notes, "\n"), "Open vSwitch: not present") {
			t.Errorf("without Open vSwitch (%v): sides %v, notes %q", missing, c.Sides, c.Notes)
		}
		return
	}
	rates, others := 0, 0
	for _, l := range c.Lines {
		if s := l.Reached[1]; s != nil && s.Rounds == 1 && l.Unit == millions {
			rates++
		} else if s != nil && s.Rounds == 1 {
			others++
		}
	}
	if rates == 0 || others != 3 {
		t.Errorf("%d rates and %d other figures of %s, want some and 3: %+v", rates, others, c.Sides[1], c.Lines)
	}
}

// TestRate: what a difference leaves nothing of has no rate.
func TestRate(t *testing.T) {
	if got := rate(1000, time.Millisecond); got != 1 {
		t.Errorf("1000 in a millisecond are %v million a second", got)
	}
	c := ovsConntrack{hertz: 1e6}
	for _, got := range []float64{rate(1000, 0), rate(1000, -1), c.rate(threadCycles{90}, threadCycles{90})} {
		if !math.IsNaN(got) {
			t.Errorf("the rate of nothing is %v", got)
		}
	}
}

func TestConntrackOptionsAreChecked(t *testing.T) {
	for _, o := range []ConntrackOptions{{Rounds: -1}, {Packets: 999}, {Packets: 1e8}, {Entries: 9999}, {Entries: 1e8}} {
		if _, err := CompareConntrack(context.Background(), o, io.Discard); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestComparisonIsWritten(t *testing.T) {
	c := &Comparison{
		Title: "Things", Machine: "a machine", Sides: []string{"one", "other"}, Notes: []string{"By hand."},
		Lines: []Line{
			{Name: "size", Unit: "bytes", Reached: []*Spread{series{208}.spread(), series{336, 342, 339}.spread()}},
			{Name: "restart", Unit: "ms", Reached: []*Spread{series{0.1, 0.123456}.spread(), nil}},
		},
	}
	for format, want := range map[string]string{
		"markdown": "Things. a machine.\n\n| median (min to max), ratio to the first | unit | one | other |\n|---|---|---|---|\n" +
			"| size | bytes | 208 | 339 (336 to 342) |\n| restart | ms | 0.112 (0.100 to 0.123) | - |\n\n- By hand.\n",
		"text": "Things\na machine\n\nmedian (min to max), ratio to the first" + spaces(22) + "unit" + spaces(34) + "one" + spaces(26) + "other\n" +
			"size" + spaces(57) + "bytes" + spaces(33) + "208" + spaces(15) + "339 (336 to 342)\n" +
			"restart" + spaces(54) + "ms" + spaces(17) + "0.112 (0.100 to 0.123)" + spaces(30) + "-\n\nBy hand.\n",
	} {
		var b strings.Builder
		if err := c.Write(&b, format); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%swant\n%s", format, err, b.String(), want)
		}
	}
	var b bytes.Buffer
	var back Comparison
	if err := c.Write(&b, "json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(back.Lines, c.Lines) {
		t.Errorf("%v: %+v", err, back)
	}
	if err := c.Write(io.Discard, "xml"); err == nil {
		t.Error("xml is a format")
	}
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// TestKernelMakesTheSamePackets compares the packets that Go makes with those
// of the program.
func TestKernelMakesTheSamePackets(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("programs need root")
	}
	for _, x := range []tuples{{}, {first: 123456}, {of: 1}, {of: 1_000_000}} {
		counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer counter.Close()
		program, err := x.program([2]int{1, 1}, counter)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		for i := range uint32(100) {
			want := newCTFrame()
			want.aim(x.client(i))
			verdict, got, err := program.Test(newCTFrame())
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("packet %d of %+v: verdict %d, %v\n%x, want\n%x", i, x, verdict, err, got, want)
			}
			if l := packet.ParseLayers(got); !l.Sound() || !want.ip().ChecksumValid() {
				t.Fatalf("packet %d of %+v is not sound: %x", i, x, got)
			}
		}
	}
}

func TestFrameTurns(t *testing.T) {
	f := newCTFrame()
	f.aim(99_999)
	before := bytes.Clone(f)
	f.turn()
	if f.udp().SrcPort() != serverPort || !bytes.Equal(f.ip().DstBytes(), ctFrame(before).ip().SrcBytes()) {
		t.Errorf("the answer to %x is %x", before, f)
	}
	if f.turn(); !bytes.Equal(f, before) {
		t.Errorf("%x, want %x again", f, before)
	}
}

func TestParseThreads(t *testing.T) {
	const first = "pmd thread numa_id 0 core_id 0:\n  packets received: 10\n  idle cycles: 900 (90.00%)\n  processing cycles: 100 (10.00%)\n" +
		"  avg processing cycles per packet: 10.00 (100/10)\n"
	const second = "pmd thread numa_id 0 core_id 1:\n  packets received: 20\n  miss with success upcall: 4\n  miss with failed upcall: 3\n  idle cycles: 1 (1.00%)\n  processing cycles: 99 (99.00%)\n"
	const rest = "main thread:\n  packets received: 7\n  idle cycles: 1\n  processing cycles: 2\n"
	want := []threadStats{{10, 900, 100, 0}, {20, 1, 99, 7}}
	for n, text := range []string{rest, first + rest, first + second + rest} {
		if all, err := parseThreads(text, n); err != nil || !slices.Equal(all, want[:n]) {
			t.Errorf("%d threads: %+v, %v", n, all, err)
		}
		if all, err := parseThreads(text, n+1); err == nil {
			t.Errorf("%d threads, not %d: %+v", n, n+1, all)
		}
	}
	for _, bad := range []string{"", "pmd thread numa_id 0:\n", "pmd thread numa_id 0:\n  packets received: 1\n" + rest} {
		if all, err := parseThreads(bad, 1); err == nil {
			t.Errorf("%q: %+v", bad, all)
		}
	}
	if _, err := parseThreads("pmd thread numa_id 0:\n  packets received: 1\n"+rest, 1); !errors.Is(err, errUnfinished) {
		t.Errorf("packets without cycles: %v, want an account that is not finished", err)
	}
}

// TestThreadsAddUp: the rates of threads are added, each above what is bare.
func TestThreadsAddUp(t *testing.T) {
	c := &ovsConntrack{hertz: 1e9}
	if got := c.rate(threadCycles{1100, 600}, threadCycles{100, 100}); got != 3 {
		t.Errorf("%v million a second, want 3: threads of 1000 and 500 cycles a packet at 1 GHz", got)
	}
	if got := c.rate(threadCycles{90}, threadCycles{100}); !math.IsNaN(got) {
		t.Errorf("%v million a second where ct() costs nothing that can be measured, want no figure", got)
	}
}
