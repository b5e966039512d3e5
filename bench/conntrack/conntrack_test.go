package conntrack

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
)

// TestCompare makes a small measurement. It has every figure of antrail's side, and of Open vSwitch's if
// it is installed.
func TestCompare(t *testing.T) {
	o := Options{Rounds: 1, Entries: 20_000, Packets: 2000}
	c, err := Compare(context.Background(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.Lines {
		if s := l.Reached[0]; (s == nil && l.Unit != millions) || s != nil && s.Rounds != 1 { // a rate may be lost among others' work
			t.Errorf("%s: %v", l.Name, s)
		}
	}
	if missing := ovs.Missing(); missing != nil {
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

// TestRate checks that a difference that is not above 0 has no rate.
func TestRate(t *testing.T) {
	if got := millionsPerSecond(1000, time.Millisecond); got != 1 {
		t.Errorf("1000 in a millisecond are %v million a second", got)
	}
	c := ovsSide{PollingSwitch: &ovs.PollingSwitch{Hertz: 1e6}}
	for _, got := range []float64{millionsPerSecond(1000, 0), millionsPerSecond(1000, -1), c.rate(threadCycles{90}, threadCycles{90})} {
		if !math.IsNaN(got) {
			t.Errorf("the rate of nothing is %v", got)
		}
	}
}

// TestOptionsAreChecked checks that options out of range are an error.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Rounds: -1}, {Packets: 999}, {Packets: 1e8}, {Entries: 9999}, {Entries: 1e8}} {
		if _, err := Compare(context.Background(), o, io.Discard); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestKernelMakesTheSamePackets compares the packets that Go makes with those of the XDP program.
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
			want := newClientFrame()
			want.setClient(x.client(i))
			verdict, got, err := program.Test(newClientFrame())
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("packet %d of %+v: verdict %d, %v\n%x, want\n%x", i, x, verdict, err, got, want)
			}
			if l := packet.ParseLayers(got); !l.Sound() || !want.ip().ChecksumValid() {
				t.Fatalf("packet %d of %+v is not sound: %x", i, x, got)
			}
		}
	}
}

// TestSwapEnds checks that an answer comes from the server, and that its answer is the first frame.
func TestSwapEnds(t *testing.T) {
	f := newClientFrame()
	f.setClient(99_999)
	before := bytes.Clone(f)
	f.swapEnds()
	if f.udp().SrcPort() != serverPort || !bytes.Equal(f.ip().DstBytes(), clientFrame(before).ip().SrcBytes()) {
		t.Errorf("the answer to %x is %x", before, f)
	}
	if f.swapEnds(); !bytes.Equal(f, before) {
		t.Errorf("%x, want %x again", f, before)
	}
}

// TestThreadsAddUp checks that the rates of threads are added, each less its bare cycles.
func TestThreadsAddUp(t *testing.T) {
	c := &ovsSide{PollingSwitch: &ovs.PollingSwitch{Hertz: 1e9}}
	if got := c.rate(threadCycles{1100, 600}, threadCycles{100, 100}); got != 3 {
		t.Errorf("%v million a second, want 3: threads of 1000 and 500 cycles a packet at 1 GHz", got)
	}
	if got := c.rate(threadCycles{90}, threadCycles{100}); !math.IsNaN(got) {
		t.Errorf("%v million a second where ct() costs nothing that can be measured, want no figure", got)
	}
}
