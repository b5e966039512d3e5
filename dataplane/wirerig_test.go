package dataplane_test

import (
	"reflect"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/wiretest"
)

// TestSwitchCrosses: what a switch with traffic tells arrives as it was sent, and a
// trace that arrives reads as the one that was sent.
func TestSwitchCrosses(t *testing.T) {
	r := newRigOf(t, sourcesOf(`
		table=0,cookie=0x7,ip actions=meter:1,load:5->NXM_OF_IP_TOS[2..7],learn(table=1,eth_type=0x800,NXM_OF_IP_SRC[],load:3->NXM_NX_REG5[0..1]),resubmit(,1),ct(commit,zone=5,nat(dst=1.2.3.4),table=2)
		table=0,priority=1 actions=NORMAL
		table=1,priority=0 actions=clone(controller),group:1
		table=2,ip,priority=7 actions=output:3,controller(reason=no_match,userdata=01.02),resubmit(,3)
		table=3,priority=0 actions=drop`,
		"group_id=1,type=select,bucket=actions=output:2", "meter=1 pktps burst stats bands=\ntype=drop rate=100 burst_size=9"))
	for _, p := range []string{anyTCP, anyTCP, ethernet(1, 0xa, 0xb)} {
		in, frame := r.compose(p)
		want := r.trace(in, frame)
		got := wiretest.Cross(t, want)
		if text(t, got) != text(t, want) {
			t.Errorf("sent:\n%s\narrived:\n%s", text(t, want), text(t, got))
		}
		sameTrace(t, got, want)
		r.sendFrame(in, frame)
	}
	r.collect()
	wiretest.Same(t, r.sw.Flows())
	wiretest.Same(t, r.sw.Groups())
	wiretest.Same(t, r.sw.Meters())
	wiretest.Same(t, r.sw.Tables())
	wiretest.Same(t, r.sw.Ports())
	wiretest.Same(t, r.sw.Workers())
	wiretest.Same(t, r.sw.PacketCounters())
	wiretest.Same(t, r.sw.OffloadStats())
	wiretest.Same(t, r.sw.Cache())
	wiretest.Same(t, r.sw.LearnedMACs())
	wiretest.Same(t, r.sw.Names())
	wiretest.Same(t, r.packetIns)
	wiretest.Same(t, r.conntrack.Stats())
	var conns []conntrack.Conn
	for c := range r.conntrack.Dump(conntrack.Filter{}) {
		conns = append(conns, c)
	}
	if len(r.packetIns) == 0 || len(conns) == 0 || len(r.sw.LearnedMACs()) == 0 {
		t.Error("the traffic left no packet-in, connection or MAC address to send")
	}
	wiretest.Same(t, conns)
}

// sameTrace compares traces, without what does not cross: places of connections.
func sameTrace(t *testing.T, got, want *telemetry.Trace) {
	t.Helper()
	for i := range want.Steps {
		g, w := got.Steps[i], want.Steps[i]
		if g.CT != nil && w.CT != nil {
			plain := *w.CT
			plain.Near = nil
			w.CT = &plain
		}
		var a, b conntrack.Original
		g.Meta.Original(&a)
		w.Meta.Original(&b)
		if a != b || telemetry.MetaKey(&g.Meta) != telemetry.MetaKey(&w.Meta) {
			t.Errorf("step %d: connection %+v arrives as %+v", i, w.Meta, g.Meta)
		}
		g.Meta, w.Meta = conntrack.Meta{}, conntrack.Meta{}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("step %d:\n%+v\narrives as\n%+v", i, w, g)
		}
	}
	if !reflect.DeepEqual(got.Verdict, want.Verdict) || got.Start != want.Start || !reflect.DeepEqual(got.Names, want.Names) {
		t.Errorf("verdict, start or names: %+v arrives as %+v", want, got)
	}
}

// TestLearnedPartCrosses: a learned entry that writes a part of nw_ttl, for which
// set_field takes no mask, arrives as a load, reads the same and can be learned again.
func TestLearnedPartCrosses(t *testing.T) {
	r := newRig(t, `
		table=0,ip actions=learn(table=1,idle_timeout=60,eth_type=0x800,NXM_OF_IP_SRC[],load:3->NXM_NX_IP_TTL[0..1]),output:2
		table=1,priority=0 actions=drop`)
	in, frame := r.compose(anyTCP)
	r.sendFrame(in, frame)
	var all []telemetry.Learned
	for _, s := range r.sw.FlowsIn(1) {
		if s.Learned {
			all = append(all, telemetry.Learned{Entry: s.Entry, Age: s.Duration, Idle: s.Idle})
		}
	}
	got := wiretest.Cross(t, all)
	if len(got) != 1 || got[0].String() != all[0].String() {
		t.Fatalf("%v arrives as %v", all, got)
	}
	if err := r.sw.Relearn(got); err != nil {
		t.Error(err)
	}
}
