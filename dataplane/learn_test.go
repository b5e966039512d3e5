package dataplane_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// affinity is the shape of Service session affinity: table 2 learns into table
// 1 which port a client's connections went to.
const affinity = `
	table=0 actions=resubmit(,1),resubmit(,2)
	table=1,priority=0 actions=set_field:1->reg0
	table=2,priority=2,tcp,reg0=1 actions=learn(table=1,%s,priority=9,cookie=0x77,eth_type=0x800,nw_proto=6,NXM_OF_IP_SRC[],load:0x2->NXM_NX_REG0[],load:NXM_OF_TCP_DST[]->NXM_NX_REG3[0..15],output:NXM_OF_IN_PORT[]),output:2
	table=2,priority=1,tcp,reg0=2,reg3=80 actions=output:3`

func newAffinityRig(t testing.TB, options string) *rig {
	t.Helper()
	return newRig(t, fmt.Sprintf(affinity, options))
}

// learnedFlows is the learned entries of a dump.
func (r *rig) learnedFlows() (learned []telemetry.FlowStats) {
	for _, f := range r.sw.Flows() {
		if f.Learned {
			learned = append(learned, f)
		}
	}
	return learned
}

// wantLearned fails unless there are n learned entries in the dump, in the tables' counts, and
// asked for alone.
func (r *rig) wantLearned(n int) {
	r.Helper()
	tables := 0
	for _, t := range r.sw.Tables() {
		tables += t.Learned
	}
	if got := len(r.learnedFlows()); got != n || tables != n {
		r.Errorf("%d learned entries in the dump, %d in the tables, want %d", got, tables, n)
	}
	if got, want := r.sw.LearnedFlows(), r.learnedFlows(); !reflect.DeepEqual(got, want) {
		r.Errorf("learned entries alone are %v, in the dump %v", got, want)
	}
}

// TestLearn checks the entry that a packet makes, and that the next packet
// takes it.
func TestLearn(t *testing.T) {
	r := newAffinityRig(t, "idle_timeout=100,hard_timeout=300")
	if got := r.outcome(anyTCP); got != "2" {
		t.Fatalf("the first packet: %q", got)
	}
	r.wantLearned(1)
	want := "cookie=0x77, table=1, idle_timeout=100, hard_timeout=300, priority=9,tcp,nw_src=10.0.0.1 actions=set_field:0x2->reg0,set_field:0x50/0xffff->reg3,output:1"
	if got := strings.TrimSpace(r.learnedFlows()[0].Entry.Text(flow.Format{})); got != want {
		t.Errorf("learned\n     %s\nwant %s", got, want)
	}
	if got := r.outcome(anyTCP); got != "3" {
		t.Errorf("the second packet: %q", got)
	}
	if n := r.learnedFlows()[0].Packets; n != 1 {
		t.Errorf("the learned entry counted %d packets, want 1", n)
	}
	if got := r.outcome(strings.Replace(anyTCP, "10.0.0.1", "10.0.0.7", 1)); got != "2" {
		t.Errorf("another client's packet: %q", got)
	}
	r.wantLearned(2)
}

// TestLearnedTimeouts lets entries expire, idle and hard.
func TestLearnedTimeouts(t *testing.T) {
	for _, c := range []struct {
		name, options string
		used          []time.Duration // when packets come
		last, gone    time.Duration   // the entry is there, and no more
	}{
		{"hard", "hard_timeout=300", []time.Duration{100 * time.Second, 299 * time.Second}, 299 * time.Second, 300 * time.Second},
		{"idle, unused", "idle_timeout=100", nil, 99 * time.Second, 100 * time.Second},
		{"idle, used", "idle_timeout=100", []time.Duration{90 * time.Second, 180 * time.Second}, 279 * time.Second, 280 * time.Second},
		{"both, used", "idle_timeout=100,hard_timeout=200", []time.Duration{90 * time.Second, 180 * time.Second}, 199 * time.Second, 200 * time.Second},
		{"none", "priority=9", nil, 1000 * time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newAffinityRig(t, c.options)
			start := *r.now
			at := func(d time.Duration) { r.warp(time.Duration(start + int64(d) - *r.now)) }
			r.send(anyTCP)
			for _, d := range c.used {
				at(d)
				if got := r.outcome(anyTCP); got != "3" {
					t.Fatalf("after %v: %q", d, got)
				}
			}
			at(c.last)
			r.wantLearned(1)
			if c.gone != 0 {
				at(c.gone)
				r.wantLearned(0)
			}
		})
	}
}

// TestLearnRefreshes checks that a packet that learns again restarts the timeouts and keeps the
// counters.
func TestLearnRefreshes(t *testing.T) {
	r := newRig(t, `
		table=0,tcp actions=learn(table=1,hard_timeout=100,eth_type=0x800,NXM_OF_IP_SRC[],load:2->NXM_NX_REG0[]),resubmit(,1),output:2
		table=1,priority=0 actions=drop`)
	for range 3 {
		r.send(anyTCP)
		r.warp(60 * time.Second)
	}
	r.wantLearned(1)
	f := r.learnedFlows()[0]
	if f.Packets != 3 || f.Duration != 60*time.Second {
		t.Errorf("%d packets in %v, want 3 packets, installed 60s ago", f.Packets, f.Duration)
	}
}

// TestLearnLimit counts learned entries by cookie.
func TestLearnLimit(t *testing.T) {
	r := newRig(t, `
		table=0,tcp,in_port=1 actions=learn(table=1,limit=2,cookie=1,eth_type=0x800,NXM_OF_IP_SRC[]),output:2
		table=0,tcp,in_port=3 actions=learn(table=1,limit=2,cookie=2,eth_type=0x800,NXM_OF_IP_SRC[]),output:2`)
	for i := range 4 {
		r.send(segment(1, fmt.Sprintf("10.0.0.%d:1", i), "10.0.0.9:80", "+syn"))
		r.send(segment(3, fmt.Sprintf("10.0.1.%d:1", i), "10.0.0.9:80", "+syn"))
	}
	r.wantLearned(4)
	cookies := map[uint64]int{}
	for _, f := range r.learnedFlows() {
		cookies[f.Cookie]++
	}
	if cookies[1] != 2 || cookies[2] != 2 {
		t.Errorf("entries by cookie: %v, want 2 each", cookies)
	}
}

// TestDeleteLearned deletes entries whose learn action says delete_learned: what
// they made goes with the last of them, and nothing else does.
func TestDeleteLearned(t *testing.T) {
	learner := func(match, cookie, option string) string {
		return fmt.Sprintf("table=0,priority=5,tcp,%s actions=learn(table=1,cookie=%s,%seth_type=0x800,NXM_OF_IP_SRC[]),output:2\n", match, cookie, option)
	}
	first, second := learner("nw_src=10.0.0.1", "1", "delete_learned,"), learner("nw_src=10.0.0.2", "1", "delete_learned,")
	other, kept := learner("nw_src=10.0.0.3", "2", "delete_learned,"), learner("nw_src=10.0.0.4", "3", "")
	r := newRig(t, first+second+other+kept)
	for i := 1; i <= 4; i++ {
		r.send(segment(1, fmt.Sprintf("10.0.0.%d:1", i), "10.0.0.9:80", "+syn"))
	}
	r.wantLearned(4)
	for _, step := range []struct {
		deleted string
		cookies []uint64
	}{{first, []uint64{1, 1, 2, 3}}, {second, []uint64{2, 3}}, {kept, []uint64{2, 3}}, {other, []uint64{3}}} {
		r.check(r.sw.Apply(&flow.Bundle{Delete: r.program(step.deleted).Entries}))
		var left []uint64
		for _, f := range r.learnedFlows() {
			left = append(left, f.Cookie)
		}
		slices.Sort(left)
		if !slices.Equal(left, step.cookies) {
			t.Errorf("after deleting %s: cookies %v are left, want %v", step.deleted, left, step.cookies)
		}
	}
}

// TestStaticTimeouts lets entries expire that no packet made.
func TestStaticTimeouts(t *testing.T) {
	r := newRig(t, "table=0,hard_timeout=10,priority=2,tcp actions=output:2\ntable=0,idle_timeout=20,priority=1 actions=output:3")
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{9 * time.Second, "2"}, {time.Second, "3"}, {19 * time.Second, "3"}, {20 * time.Second, "drop table_miss in 0"}} {
		r.warp(step.wait)
		if got := r.outcome(anyTCP); got != step.want {
			t.Errorf("after another %v: %q, want %q", step.wait, got, step.want)
		}
	}
}

// TestRelearn: what packets learned goes on in a switch that is made after, until
// its time has come; what no learn action makes is refused.
func TestRelearn(t *testing.T) {
	const timeouts = "idle_timeout=100,hard_timeout=300"
	r := newAffinityRig(t, timeouts)
	r.outcome(anyTCP)
	r.warp(50 * time.Second)
	var all []telemetry.Learned
	for _, f := range r.learnedFlows() {
		all = append(all, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
	}

	next := newAffinityRig(t, timeouts)
	if err := next.sw.Relearn(all); err != nil {
		t.Fatal(err)
	}
	next.wantLearned(1)
	if got := next.outcome(anyTCP); got != "3" {
		t.Errorf("a packet in the next switch: %q", got)
	}
	if f := next.learnedFlows()[0]; f.Duration != 50*time.Second || f.Idle != 0 {
		t.Errorf("it is %v old, the last packet %v", f.Duration, f.Idle)
	}
	next.warp(99 * time.Second)
	next.outcome(anyTCP)
	next.wantLearned(1)
	late := newAffinityRig(t, timeouts)
	if err := late.sw.Relearn([]telemetry.Learned{{Entry: all[0].Entry, Age: 300 * time.Second}, {Entry: all[0].Entry, Idle: 100 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	late.wantLearned(0)

	for _, bad := range []func(*flow.Entry){
		func(e *flow.Entry) { e.Table = 200 },
		func(e *flow.Entry) { e.Actions = []flow.Action{flow.GotoTable{Table: 7}} },
		func(e *flow.Entry) { e.Actions = []flow.Action{flow.GroupAction{ID: 1}} },
	} {
		e := *all[0].Entry
		bad(&e)
		if err := late.sw.Relearn([]telemetry.Learned{all[0], {Entry: &e}}); err == nil || !strings.Contains(err.Error(), "no learn action makes such an entry") {
			t.Errorf("%v: %v", &e, err)
		}
	}
	late.wantLearned(0)
}
