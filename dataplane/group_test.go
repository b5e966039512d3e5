package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// bucket is one bucket of selectGroup.
type bucket struct {
	id, weight int
	port       uint32
}

// selectGroup is a select group whose buckets send to a port each.
func selectGroup(buckets ...bucket) string {
	var b strings.Builder
	b.WriteString("group_id=1,type=select")
	for _, k := range buckets {
		fmt.Fprintf(&b, ",bucket=bucket_id:%d,weight:%d,actions=output:%d", k.id, k.weight, k.port)
	}
	return b.String()
}

// newGroupRig is a rig whose packets all go to group 1.
func newGroupRig(t testing.TB, groups string) *rig {
	t.Helper()
	return newRigOf(t, parse.Sources{Flows: parse.Text("flows", "table=0 actions=group:1"), Groups: parse.Text("groups", groups)})
}

// choices sends n connections and returns by which port each left.
func (r *rig) choices(n int) []uint32 {
	r.Helper()
	chosen := make([]uint32, n)
	for i := range chosen {
		out := r.send(segment(1, fmt.Sprintf("10.0.%d.%d:%d", i>>8&0xff, i&0xff, 1000+i), "10.96.0.1:80", "+syn"))
		if len(out) != 1 {
			r.Fatalf("connection %d left %d times", i, len(out))
		}
		chosen[i] = out[0].port
	}
	return chosen
}

func count(chosen []uint32) map[uint32]int {
	n := map[uint32]int{}
	for _, p := range chosen {
		n[p]++
	}
	return n
}

// TestSelectGroup checks that connections spread by weight, that each keeps its
// bucket, and that taking a bucket away moves only those that it had.
func TestSelectGroup(t *testing.T) {
	r := newGroupRig(t, selectGroup(bucket{0, 100, 2}, bucket{1, 100, 3}, bucket{2, 100, 4}))
	first := r.choices(600)
	for port, n := range count(first) {
		if n < 100 || n > 300 {
			t.Errorf("%d of 600 connections by port %d", n, port)
		}
	}
	for i, port := range r.choices(600) {
		if port != first[i] {
			t.Fatalf("connection %d went by port %d, then by %d", i, first[i], port)
		}
	}
	g, err := parse.Group(selectGroup(bucket{0, 100, 2}, bucket{2, 100, 4}), nil)
	r.check(err)
	r.check(r.sw.Apply(&flow.Bundle{Groups: []*flow.Group{g}}))
	for i, port := range r.choices(600) {
		if first[i] != 3 && port != first[i] {
			t.Fatalf("connection %d moved from port %d to %d, though its bucket is there", i, first[i], port)
		}
	}
}

// TestSelectGroupWeights checks that weights are shares, and that weight 0 is
// none.
func TestSelectGroupWeights(t *testing.T) {
	r := newGroupRig(t, selectGroup(bucket{0, 300, 2}, bucket{1, 100, 3}, bucket{2, 0, 4}))
	n := count(r.choices(2000))
	if n[3] < 400 || n[3] > 600 || n[4] != 0 {
		t.Errorf("weights 300, 100 and 0 got %d, %d and %d of 2000 connections", n[2], n[3], n[4])
	}
}

// TestGroups follows one packet through groups of every type, alone and in the
// midst of a list.
func TestGroups(t *testing.T) {
	for _, c := range []struct{ name, flows, groups, want string }{
		{"all", "table=0 actions=group:1", "group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3", "2 3"},
		{"all isolates its buckets", "table=0,tcp actions=group:1\ntable=1,reg0=0,tcp,tcp_dst=80 actions=output:3",
			"group_id=1,type=all,bucket=actions=set_field:1->reg0,set_field:9->tcp_dst,output:2,bucket=actions=resubmit(,1)", "2 3"},
		{"all in the midst", "table=0 actions=group:1,resubmit(,1)\ntable=1,reg0=0 actions=output:4",
			"group_id=1,type=all,bucket=actions=set_field:1->reg0,output:2,bucket=actions=output:3", "2 3 4"},
		{"select in the midst", "table=0 actions=group:1,resubmit(,1)\ntable=1,reg0=0 actions=output:4",
			"group_id=1,type=select,bucket=actions=set_field:1->reg0,resubmit(,2)\n", "4"},
		{"select goes on in a table", "table=0 actions=group:1\ntable=1,reg0=1 actions=output:4",
			"group_id=1,type=select,bucket=actions=set_field:1->reg0,resubmit(,1)", "4"},
		{"indirect", "table=0 actions=group:1", "group_id=1,type=indirect,bucket=actions=output:3", "3"},
		{"no buckets", "table=0 actions=group:1", "group_id=1,type=all", "drop no_bucket in 0"},
		{"weight 0 only", "table=0 actions=group:1", "group_id=1,type=select,bucket=weight:0,actions=output:2", "drop no_bucket in 0"},
		{"a bucket that tracks", "table=0,ip actions=group:1\ntable=1,ct_state=+trk,ip actions=output:2",
			"group_id=1,type=select,bucket=actions=ct(commit,zone=5,table=1)", "2"},
		{"a group that runs itself", "table=0 actions=group:1", "group_id=1,type=all,bucket=actions=group:1,bucket=actions=group:1", "drop too_deep in 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigOf(t, parse.Sources{Flows: parse.Text("flows", c.flows), Groups: parse.Text("groups", c.groups)})
			if got := r.outcome(anyTCP); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestBucketCounters checks that a group's counters are the sum of its buckets'
// and that each bucket counts what it sent.
func TestBucketCounters(t *testing.T) {
	r := newGroupRig(t, selectGroup(bucket{5, 100, 2}, bucket{6, 100, 3}))
	n := count(r.choices(100))
	g := r.sw.Groups()[0]
	if g.Packets != 100 || g.Buckets[0].Packets != uint64(n[2]) || g.Buckets[1].Packets != uint64(n[3]) {
		t.Errorf("group counts %d, buckets %v; sent %v", g.Packets, g.Buckets, n)
	}
	if g.Bytes == 0 || g.Bytes != g.Buckets[0].Bytes+g.Buckets[1].Bytes {
		t.Errorf("group counts %d bytes, buckets %v", g.Bytes, g.Buckets)
	}
}

// TestSelectGroupManyBuckets uses every one of a group's buckets.
func TestSelectGroupManyBuckets(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var buckets []bucket
	for i := range 20 {
		buckets = append(buckets, bucket{i, 1 + rnd.IntN(3), 2})
	}
	r := newGroupRig(t, selectGroup(buckets...))
	r.choices(2000)
	for i, b := range r.sw.Groups()[0].Buckets {
		if b.Packets == 0 {
			t.Errorf("bucket %d of weight %d was never chosen among 2000 connections", i, buckets[i].weight)
		}
	}
}
