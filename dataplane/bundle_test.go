package dataplane_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// TestBundleRefused checks that a bundle with one bad entry changes nothing and
// that the error prints the entry.
func TestBundleRefused(t *testing.T) {
	r := newRigOf(t, parse.Sources{
		Flows:  parse.Text("flows", "table=0,priority=1 actions=group:1"),
		Groups: parse.Text("groups", "group_id=1,type=select,bucket=actions=output:2"),
		Meters: parse.Text("meters", "meter=1 pktps bands=\ntype=drop rate=10"),
	})
	generation, before := r.sw.Generation(), strings.Join(r.flows(), "\n")
	group := func(text string) *flow.Group {
		g, err := parse.Group(text, nil)
		r.check(err)
		return g
	}
	for _, c := range []struct {
		name   string
		bundle flow.Bundle
		text   string // the entry as printed
		reason string
	}{
		{"no such group", flow.Bundle{Add: r.program("table=0,priority=5,tcp actions=output:3\ntable=0,priority=9,tcp,tp_dst=80 actions=group:7").Entries},
			"priority=9,tcp,tp_dst=80 actions=group:7", "group 7 does not exist"},
		{"no such group in clone", flow.Bundle{Add: r.program("table=0,priority=9 actions=clone(group:7)").Entries}, "actions=clone(group:7)", "group 7 does not exist"},
		{"no such meter", flow.Bundle{Add: r.program("table=0,priority=9 actions=meter:7,output:2").Entries}, "priority=9 actions=meter:7,output:2", "meter 7 does not exist"},
		{"no such meter of controller", flow.Bundle{Add: r.program("table=0,priority=9 actions=controller(meter_id=7)").Entries}, "meter_id=7", "meter 7 does not exist"},
		{"alg", flow.Bundle{Add: r.program("table=0,priority=9,tcp actions=ct(commit,alg=ftp)").Entries}, "priority=9,tcp actions=ct(commit,alg=ftp)", "alg=ftp"},
		{"no such group in a bucket", flow.Bundle{Groups: []*flow.Group{group("group_id=2,type=all,bucket=actions=group:7")}}, "group_id=2,type=all,bucket=", "group 7 does not exist"},
		{"a group in use is deleted", flow.Bundle{DeleteGroups: []uint32{1}}, "priority=1 actions=group:1", "group 1 does not exist"},
		{"replaced without its group", flow.Bundle{Replace: true, Add: r.program("table=0,priority=1 actions=group:1").Entries}, "priority=1 actions=group:1", "group 1 does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := r.sw.Apply(&c.bundle)
			var invalid *program.InvalidEntryError
			if !errors.As(err, &invalid) || !strings.Contains(invalid.Text, c.text) || !strings.Contains(invalid.Reason, c.reason) {
				t.Errorf("error %v, want %q: %q", err, c.text, c.reason)
			}
			if after := strings.Join(r.flows(), "\n"); after != before || r.sw.Generation() != generation {
				t.Errorf("the pipeline is now\n%s\nwas\n%s", after, before)
			}
			if got := r.outcome(anyTCP); got != "2" {
				t.Errorf("afterwards a packet goes %q", got)
			}
		})
	}
}

// TestBundleNamesManyErrors checks that a bundle with a hundred bad entries is
// refused with a list that a person can read.
func TestBundleNamesManyErrors(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	var lines strings.Builder
	for i := range 100 {
		fmt.Fprintf(&lines, "table=0,priority=%d actions=group:7\n", i)
	}
	err := r.sw.Apply(&flow.Bundle{Add: r.program(lines.String()).Entries})
	if n := strings.Count(fmt.Sprint(err), "group 7 does not exist"); n != 20 {
		t.Errorf("%d entries are named, want 20", n)
	}
}

// TestBundleChanges adds, modifies, replaces and deletes, and checks what
// packets do then and what counters were kept.
func TestBundleChanges(t *testing.T) {
	r := newRig(t, "table=0,priority=1 actions=output:2")
	step := func(name string, b *flow.Bundle, want string, counted map[uint16]uint64) {
		t.Helper()
		r.check(r.sw.Apply(b))
		if got := r.outcome(anyTCP); got != want {
			t.Fatalf("%s: %q, want %q", name, got, want)
		}
		if got := r.packets(0); fmt.Sprint(got) != fmt.Sprint(counted) {
			t.Fatalf("%s: packets by priority %v, want %v", name, got, counted)
		}
	}
	entries := func(text string) []*flow.Entry { return r.program(text).Entries }
	step("nothing", &flow.Bundle{}, "2", map[uint16]uint64{1: 1})
	step("add", &flow.Bundle{Add: entries("table=0,priority=2,tcp actions=output:3")}, "3", map[uint16]uint64{1: 1, 2: 1})
	step("modify keeps counters", &flow.Bundle{Add: entries("table=0,priority=2,tcp actions=output:4")}, "4", map[uint16]uint64{1: 1, 2: 2})
	step("replace keeps those of equal identity", &flow.Bundle{Replace: true, Add: entries("table=0,priority=2,tcp actions=output:3\ntable=0,priority=3,udp actions=drop")}, "3", map[uint16]uint64{2: 3, 3: 0})
	step("delete what is not there", &flow.Bundle{Delete: entries("table=0,priority=7 actions=drop\ntable=9 actions=drop")}, "3", map[uint16]uint64{2: 4, 3: 0})
	again := entries("table=0,priority=2,tcp actions=output:4")
	step("delete and add begins new counters", &flow.Bundle{Delete: again, Add: again}, "4", map[uint16]uint64{2: 1, 3: 0})
	step("delete", &flow.Bundle{Delete: entries("table=0,priority=2,tcp actions=drop")}, "drop table_miss in 0", map[uint16]uint64{3: 0})
	step("replace by nothing", &flow.Bundle{Replace: true}, "drop table_miss in 0", map[uint16]uint64{})
}

// TestModifiedGroupKeepsCounters modifies a group: buckets keep their counters
// by their id.
func TestModifiedGroupKeepsCounters(t *testing.T) {
	r := newGroupRig(t, selectGroup(bucket{1, 100, 2}))
	r.choices(5)
	g, err := parse.Group(selectGroup(bucket{2, 0, 3}, bucket{1, 100, 2}), nil)
	r.check(err)
	r.check(r.sw.Apply(&flow.Bundle{Groups: []*flow.Group{g}}))
	r.choices(2)
	if got := r.sw.Groups()[0]; got.Packets != 7 || got.Buckets[0].Packets != 0 || got.Buckets[1].Packets != 7 {
		t.Errorf("group counts %d, buckets %v; want 7 and 0, 7", got.Packets, got.Buckets)
	}
}

// generation is a pipeline in which both tables carry a version: a packet that
// saw two generations leaves with different numbers in its addresses.
func generation(r *rig, version int) *flow.Bundle {
	p := r.program(fmt.Sprintf(`
		table=0,ip actions=set_field:0.0.0.%d->nw_src,goto_table:1
		table=1,ip actions=group:1`, version))
	g, err := parse.Group(fmt.Sprintf("group_id=1,type=select,bucket=actions=set_field:0.0.0.%d->nw_dst,output:2", version), nil)
	r.check(err)
	return &flow.Bundle{Replace: version%2 == 0, Add: p.Entries, Groups: []*flow.Group{g}}
}

// TestBundlesAreAtomic lets two goroutines change the pipeline while packets
// pass: every packet sees one generation whole.
func TestBundlesAreAtomic(t *testing.T) {
	r := newRig(t, "table=0 actions=drop")
	bundles := []*flow.Bundle{generation(r, 1), generation(r, 2), generation(r, 3), generation(r, 4)}
	r.check(r.sw.Apply(bundles[0]))
	var wg sync.WaitGroup
	done := make(chan struct{})
	apply := func(mine []*flow.Bundle) {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := r.sw.Apply(mine[i%2]); err != nil {
				t.Error(err)
			}
		}
	}
	wg.Go(func() { apply(bundles[:2]) })
	wg.Go(func() { apply(bundles[2:]) })
	seen := pump(t, r, 4)
	close(done)
	wg.Wait()
	if len(seen) < 4 {
		t.Errorf("packets saw the generations %v only", seen)
	}
}

// pump sends at least 3000 packets, and more until so many versions were seen,
// and returns how many packets saw which.
func pump(t *testing.T, r *rig, versions int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	in, frame := r.compose(anyTCP)
	for i := 0; i < 3000 || len(seen) < versions && i < 1e6; i++ {
		for _, s := range r.sendFrame(in, frame) {
			src, dst := s.field(flow.IPSrc), s.field(flow.IPDst)
			if src != dst {
				t.Fatalf("a packet saw the tables of %s and the groups of %s", src, dst)
			}
			seen[src]++
		}
	}
	return seen
}

// TestPortsComeAndGo changes ports under a switch that runs, with packets on
// the way.
func TestPortsComeAndGo(t *testing.T) {
	r := newRig(t, "table=0 actions=FLOOD")
	pool := packet.NewPool(64, 2048)
	_, frame := r.compose(anyTCP)
	for i := range 50 {
		no := uint32(20 + i%3)
		p := memory.New("pod", memory.Options{})
		r.check(r.sw.AddPort(no, p))
		if err := r.sw.AddPort(no, p); err == nil {
			t.Fatal("two ports got one number")
		}
		one := make([]*packet.Frame, 1)
		pool.Get(one)
		one[0].SetBytes(frame)
		p.Inject(one[0])
		r.sw.Poll()
		r.check(r.sw.RemovePort(no))
		if err := r.sw.RemovePort(no); err == nil {
			t.Fatal("a port was removed twice")
		}
		r.collect()
	}
	if pool.Free() != 64 {
		t.Errorf("%d of 64 frames came back", pool.Free())
	}
}

// TestManyEntriesKeepTheirOrder: of entries with the same priority, dumps name those first
// that stand first in the bundle, however many there are.
func TestManyEntriesKeepTheirOrder(t *testing.T) {
	r := newRigOf(t, parse.Sources{Flows: parse.Text("flows", "table=0,priority=1 actions=drop")})
	b := &flow.Bundle{Replace: true}
	for i := range 2000 {
		var m flow.Match
		m.AddExact(flow.Reg0, flow.Value{Lo: uint64(i * 7919 % 2003)})
		b.Add = append(b.Add, &flow.Entry{Table: 1, Priority: 7, Cookie: uint64(i), Match: m.Mini()})
	}
	r.check(r.sw.Apply(b))
	all := r.sw.FlowsIn(1)
	if len(all) != len(b.Add) {
		t.Fatalf("%d entries, want %d", len(all), len(b.Add))
	}
	for i, f := range all {
		if f.Cookie != uint64(i) {
			t.Fatalf("entry %d is that of cookie %d", i, f.Cookie)
		}
	}
}
