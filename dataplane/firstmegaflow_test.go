package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow/parse"
)

// newFirstMegaflow is a rig whose switch remembers all there is to remember.
func newFirstMegaflow(t testing.TB, flows string, c conntrack.Config) *rig {
	return newRemembering(t, flows, c, dataplane.Config{TimeEvery: 1 << 30})
}

// first sends the first packet of a connection, and says what came out.
func (r *rig) first(src, dst int) []sent {
	return r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=%d", src, dst))
}

// TestFirstMegaflows: from the fifth on, first packets between two ends take no megaflow and no
// lookup; each begins a connection, and all is counted as if they did. A port that
// an entry asks for tells them apart.
func TestFirstMegaflows(t *testing.T) {
	r := newFirstMegaflow(t, threeMegaflows, conntrack.Config{})
	for n := range 5 {
		r.first(1000+n, 53)
	}
	if n := r.counted(telemetry.CacheFirst, func() {
		for n := range 100 {
			out := r.first(2000+n, 53)
			r.wantPorts(out, 4)
			if ttl := out[0].frame[22]; ttl != 63 {
				t.Fatalf("TTL %d, want 63", ttl)
			}
		}
	}); n != 100 {
		t.Errorf("%d packets met first-packet megaflows, want 100", n)
	}
	if st := r.conntrack.Stats(); st.Entries != 105 || st.Created != 105 {
		t.Errorf("conntrack has %+v", st)
	}
	for table := range uint8(5) {
		if got := r.tableOf(table); got.Lookups != 105 || got.Hits != 105 {
			t.Errorf("table %d counts %d lookups and %d hits, want 105", table, got.Lookups, got.Hits)
		}
	}
	r.conntrack.Flush()
	r.first(2000, 53)
	r.first(2000, 53)
	r.conntrack.Flush()
	if n := r.counted(telemetry.CacheFirst, func() { r.wantPorts(r.first(2000, 53), 4) }); n != 1 {
		t.Error("a connection that was forgotten did not begin as others do")
	}
	r.wantPorts(r.first(3000, 54))
	r.wantPorts(r.first(2000, 53), 4) // of a connection that is there
	if st := r.conntrack.Stats(); st.Entries != 1 {
		t.Errorf("there are %d connections, want 1", st.Entries)
	}
}

// TestFirstMegaflowsOfRefused: first packets that an entry drops are first-packet megaflows too.
func TestFirstMegaflowsOfRefused(t *testing.T) {
	r := newFirstMegaflow(t, "table=0,ip actions=ct(table=1,zone=5)\ntable=1,priority=5,udp,tp_dst=53 actions=output:2\ntable=1,priority=1 actions=drop", conntrack.Config{})
	for n := range 200 {
		r.wantPorts(r.first(1000+n, 5000+n))
	}
	r.wantPorts(r.first(1000, 53), 2)
	if n := r.drops()["drop entry in 1"]; n != 200 {
		t.Errorf("drops are %v", r.drops())
	}
	if n := r.sw.Cache().Events[telemetry.CacheFirst]; n < 150 {
		t.Errorf("%d packets met first-packet megaflows", n)
	}
}

// TestNoFirstMegaflows: where a walk reads or writes a port in another way than by a lookup,
// or asks for the client's, each packet is treated by its own.
func TestNoFirstMegaflows(t *testing.T) {
	const tail = "\ntable=1,reg1=1 actions=output:2\ntable=1,priority=0 actions=output:3"
	for name, flows := range map[string]string{
		"source port asked for":    "table=0,priority=2,udp,tp_src=2001 actions=drop\ntable=0,priority=1,ip actions=ct(commit,table=1,zone=5)" + tail,
		"port of the tuple":        "table=0,ip actions=ct(table=1,zone=5)\ntable=1,priority=2,ct_state=+new+trk,ip,ct_nw_proto=17,ct_tp_src=2001 actions=drop\ntable=1,priority=1,ip actions=ct(commit,table=2,zone=5)\ntable=2 actions=output:2",
		"mark from a port":         "table=0,ip actions=ct(table=1,zone=5)\ntable=1,udp actions=ct(commit,table=2,zone=5,exec(move:NXM_OF_UDP_SRC[]->NXM_NX_CT_MARK[0..15]))\ntable=2,priority=2,ct_mark=2001 actions=drop\ntable=2,priority=1 actions=output:2",
		"zone from a port":         "table=0,udp actions=ct(table=1,zone=NXM_OF_UDP_SRC[])\ntable=1,ip actions=output:2",
		"register from a port":     "table=0,ip actions=ct(table=1,zone=5)\ntable=1,udp actions=move:NXM_OF_UDP_SRC[]->NXM_NX_REG1[0..15],goto_table:2\ntable=2,priority=2,reg1=2001 actions=drop\ntable=2,priority=1 actions=output:2",
		"output by a port":         "table=0,ip actions=ct(table=1,zone=5)\ntable=1,udp actions=output:NXM_OF_UDP_DST[]",
		"port written":             "table=0,ip actions=ct(table=1,zone=5)\ntable=1,udp actions=set_field:53->udp_dst,output:2",
		"two groups":               "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=group:3\ntable=2,ip actions=group:1",
		"group behind a rewrite":   "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=set_field:10.0.0.7->nw_dst,group:1",
		"port written in a bucket": "table=0,ip actions=ct(table=1,zone=5)\ntable=1,udp actions=group:4",
		"another in_port":          "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=resubmit(7,2)\ntable=2,in_port=7 actions=output:2",
		"group of all":             "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=group:2",
		"destinations":             "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=ct(commit,table=2,zone=5,nat(dst=10.5.5.5-10.5.5.9:53))\ntable=2,ip actions=output:2",
		"destination's ports":      "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=ct(commit,table=2,zone=5,nat(dst=10.5.5.5:53-60))\ntable=2,ip actions=output:2",
		"client's port behind nat": "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=ct(commit,table=2,zone=5,nat(dst=10.5.5.5:53))\ntable=2,priority=2,udp,tp_src=2001 actions=drop\ntable=2,priority=1 actions=output:2",
		"two zones":                "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=ct(commit,table=2,zone=5)\ntable=2,ip actions=ct(commit,table=3,zone=6)\ntable=3,ip actions=output:2",
		"source translated":        "table=0,ip actions=ct(table=1,zone=5)\ntable=1,ip actions=ct(commit,table=2,zone=5,nat(src=10.5.5.5))\ntable=2,ip actions=output:2",
		"commit that says nothing": "table=0,ip actions=ct(commit,table=1,zone=5)\ntable=1,ip actions=output:2",
	} {
		t.Run(name, func(t *testing.T) {
			const groups = "group_id=1,type=select,bucket=bucket_id=1,actions=output:2,bucket=bucket_id=2,actions=output:3\n" +
				"group_id=2,type=all,bucket=bucket_id=1,actions=output:2,bucket=bucket_id=2,actions=output:3\n" +
				"group_id=3,type=select,bucket=bucket_id=1,actions=resubmit(,2),bucket=bucket_id=2,actions=resubmit(,2)\n" +
				"group_id=4,type=select,bucket=bucket_id=1,actions=set_field:53->udp_dst,output:2"
			w := newTwins(t, 0, twinSource{src: plainSources(flows, groups), hosts: []host{{port: 1}}}, nil)
			for n := range 60 {
				for _, dst := range []int{53, 2, 3} {
					_, frame := w.rigs[0].compose(fmt.Sprintf("udp,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=%d", 1990+n, dst))
					w.number(frame)
					w.send(offer{port: 1, frame: frame})
				}
			}
			w.compare()
			if n := w.rigs[0].sw.Cache().Events[telemetry.CacheFirst]; n != 0 {
				t.Errorf("%d packets met first-packet megaflows", n)
			}
		})
	}
}

// plainSources is entries and groups with four ports.
func plainSources(flows, groups string) parse.Sources {
	src := sourcesOf(flows, groups, "")
	src.Ports = parse.Text("ports", " 1(p1)\n 2(p2)\n 3(p3)\n 4(p4)\n")
	return src
}

// TestFirstMegaflowsEndWithLearnedEntries: the first entry that a table learns counts for
// packets of a first-packet megaflow through that table.
func TestFirstMegaflowsEndWithLearnedEntries(t *testing.T) {
	r := newFirstMegaflow(t, `
	table=0,priority=2,in_port=2,udp actions=learn(table=1,hard_timeout=60,priority=5,eth_type=0x800,nw_dst=10.0.0.9,load:0x1->NXM_NX_REG1[])
	table=0,priority=1,ip actions=ct(table=1,zone=5)
	table=1,priority=1,ip actions=goto_table:2
	table=2,priority=2,reg1=1 actions=drop
	table=2,priority=1,ip actions=ct(commit,table=3,zone=5)
	table=3,ip actions=output:3`, conntrack.Config{})
	learn := "udp,in_port=2,nw_src=10.0.0.2,nw_dst=10.0.0.1,nw_ttl=64,udp_src=1,udp_dst=2"
	r.send(learn)
	r.warp(61e9)
	r.sw.Expire()
	for round := range 2 {
		if n := r.counted(telemetry.CacheFirst, func() {
			for n := range 20 {
				r.wantPorts(r.first(1000+100*round+n, 53), 3)
			}
		}); n < 10 {
			t.Errorf("%d packets met first-packet megaflows", n)
		}
		r.send(learn)
		for n := range 20 {
			r.wantPorts(r.first(5000+100*round+n, 53))
		}
		r.warp(61e9)
		r.sw.Expire()
	}
}

// TestFirstMegaflowsRefusedByConntrack: what a limit refuses is dropped for its reason, and has
// taken no token of the port's.
func TestFirstMegaflowsRefusedByConntrack(t *testing.T) {
	r := newFirstMegaflow(t, threeMegaflows, conntrack.Config{NewRate: 20})
	for n := range 100 {
		r.first(1000+n, 53)
	}
	if n := r.drops()["drop ct_new_rate in 3"]; n != 60 {
		t.Errorf("drops are %v, want 60 for ct_new_rate", r.drops())
	}
	r = newFirstMegaflow(t, threeMegaflows, conntrack.Config{NewRate: 20})
	for n := range 10 {
		r.first(1000+n, 53)
	}
	r.conntrack.SetLimit(5, 10)
	for n := range 5 {
		r.first(2000+n, 53)
	}
	if n := r.drops()["drop ct_zone_full in 3"]; n != 5 {
		t.Errorf("drops are %v, want 5 for ct_zone_full", r.drops())
	}
	r.conntrack.DelLimit(5)
	begun := 0
	for n := range 100 {
		begun += len(r.first(3000+n, 53))
	}
	if begun != 25 { // of 40; those that found the zone full took one each
		t.Errorf("%d connections began, want 25", begun)
	}
}

// TestFirstMegaflowsChangeNothing is TestCacheChangesNothing for traffic most of which begins
// connections.
func TestFirstMegaflowsChangeNothing(t *testing.T) {
	sources := twinSources(t)
	sources["rewrites"] = rewritesSource(t)
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64() / 3 * 3 // both walks and megaflows
			t.Logf("seed %d", seed)
			first := uint64(0)
			little := func() bool { return name == "antrea" && first < 20 }
			for i := range rounds(4, little) {
				w := newTwins(t, seed+3*i, s, nil)
				w.fresh, w.calm = true, true
				n := int(3+i) % (len(s.hosts) - 1)
				w.hosts = s.hosts[n : n+2] // few pairs of ends, each often
				to := s.to
				switch {
				case name == "antrea" && i%4 == 2: // one Service without session affinity
					to = []string{"10.105.31.235"}
				case name == "rewrites":
				case i%4 < 3: // no Service: where one's table has learned entries there are no first-packet megaflows
					to = to[:3]
				}
				w.walk(3000, to)
				first += w.rigs[0].sw.Cache().Events[telemetry.CacheFirst]
			}
			if t.Logf("%d first packets were replayed", first); little() {
				t.Error("this proves little")
			}
		})
	}
}

// TestBesideFirstMegaflows: a packet that might begin a connection and does not is remembered
// by all its headers, and found again.
func TestBesideFirstMegaflows(t *testing.T) {
	r := newFirstMegaflow(t, threeMegaflows, conntrack.Config{})
	for n := range 6 {
		r.first(1000+n, 53)
	}
	if n := r.counted(telemetry.CacheHit, func() {
		for range 12 {
			r.wantPorts(r.first(1000, 53), 4)
		}
	}); n < 8 {
		t.Errorf("%d of 12 packets of a connection were replayed", n)
	}
}
