package local

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// TestLargeBundleRefused: the switch answers at the first wrong line, and its error reaches the
// client, which is still sending. The next bundle is installed.
func TestLargeBundleRefused(t *testing.T) {
	r := newRig(t)
	large := &flow.Bundle{Add: []*flow.Entry{{Priority: 1, Actions: []flow.Action{flow.Conjunction{ID: 1, Clause: 1, N: 2}, flow.Output{Port: 1}}}}}
	for i := range 50_000 {
		large.Add = append(large.Add, &flow.Entry{Table: 2, Priority: uint16(i), Actions: []flow.Action{flow.Output{Port: uint32(1 + i%9)}}})
	}
	for range 3 {
		if err := r.client.Apply(large); err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
			t.Fatalf("conjunction beside output: %v", err)
		}
	}
	large.Add = large.Add[1:]
	if err := r.client.Apply(large); err != nil {
		t.Fatal(err)
	}
	if n := len(r.sw.FlowsIn(2)); n != 50_000 {
		t.Errorf("%d entries", n)
	}
}

// BenchmarkBundle sends a hundred thousand entries through the socket, into an empty
// pipeline. Sender and switch share the processors, as two processes do. They share the
// heap, too: garbage collections mark the entries of both.
func BenchmarkBundle(b *testing.B) {
	const entries = 100_000
	var text bytes.Buffer
	for i := range entries {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&text, "cookie=0x1030000000000, table=14, priority=%d,ip,nw_src=10.%d.%d.%d actions=conjunction(%d,1/3)\n", 14000+i%900, i>>16&0xff, i>>8&0xff, i&0xff, 1+i/60)
		case 1:
			fmt.Fprintf(&text, "cookie=0x1030000000000, table=14, priority=%d,tcp,tp_dst=%d actions=conjunction(%d,3/3)\n", 14000+i%900, 1+i%60000, 1+i/60)
		case 2:
			fmt.Fprintf(&text, "cookie=0x1030000000000, table=14, priority=%d,conj_id=%d,ip actions=set_field:0x%x->reg5,ct(commit,table=18,zone=65520,exec(set_field:0x%x/0xffffffff->ct_label))\n", 14000+i%900, i, i, i)
		}
	}
	bundle, err := door.ReadBundle(&text, nil)
	if err != nil {
		b.Fatal(err)
	}
	bundle.Replace = true
	for b.Loop() {
		b.StopTimer()
		r := newRig(b)
		b.StartTimer()
		if err := r.client.Apply(bundle); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := r.client.Apply(&flow.Bundle{Replace: true}); err != nil { // rigs stay until the end
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(entries*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
