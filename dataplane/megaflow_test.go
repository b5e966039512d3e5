package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// newMegaflowed is a rig whose switch remembers megaflows but no walks.
func newMegaflowed(t testing.TB, megaflows int, flows string) *rig {
	return newRemembering(t, flows, conntrack.Config{}, dataplane.Config{Cache: -1, Megaflows: megaflows})
}

// counted is what a step added to a counter.
func (r *rig) counted(e telemetry.CacheEvent, step func()) uint64 {
	before := r.sw.Cache().Events[e]
	step()
	return r.sw.Cache().Events[e] - before
}

const threeMegaflows = `
	table=0,priority=9,in_port=1,ip actions=set_field:0x7->reg1,goto_table:1
	table=0,priority=8,ip actions=goto_table:1
	table=1,priority=5,ip,nw_dst=10.0.0.9 actions=dec_ttl,goto_table:2
	table=1,priority=1,ip actions=drop
	table=2,ip actions=ct(table=3,zone=5)
	table=3,priority=5,ct_state=+new+trk,udp,tp_dst=53 actions=ct(commit,table=4,zone=5)
	table=3,priority=4,ct_state=+rpl+trk,udp,tp_src=53 actions=goto_table:4
	table=3,priority=1,ip actions=drop
	table=4,priority=5,reg1=7 actions=output:4
	table=4,priority=1,ip actions=output:2`

// TestMegaflowsServeNewConnections: a new connection that differs from known
// ones in the port of its client takes three megaflows and looks nothing up,
// though an entry asks for the port of answers' senders.
func TestMegaflowsServeNewConnections(t *testing.T) {
	r := newMegaflowed(t, 1<<16, threeMegaflows)
	send := func(from, n int) {
		for i := range n {
			r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53", from+i))
		}
	}
	send(1000, 2)
	if n := r.counted(telemetry.MegaflowHit, func() { send(2000, 100) }); n != 300 {
		t.Errorf("%d megaflows were taken, want 300", n)
	}
	if n := r.counted(telemetry.MegaflowMiss, func() { send(3000, 100) }); n != 0 {
		t.Errorf("%d megaflows were walked", n)
	}
	if n := len(r.collect()); n != 0 {
		t.Fatalf("%d packets are left over", n)
	}
	wantShapes(t, r, "[{0 in_port,eth_type,ip_dst 200} {3 ct_state/0x21,eth_type,nw_proto,tcp_dst 200} {4 reg1 200}]")
	if st := r.conntrack.Stats(); st.Entries != 202 {
		t.Errorf("there are %d connections, want 202", st.Entries)
	}
	for table, hits := range map[uint8]uint64{0: 202, 1: 202, 2: 202, 3: 202, 4: 202} {
		if got := r.tableOf(table); got.Lookups != hits || got.Hits != hits {
			t.Errorf("table %d counts %d lookups and %d hits, want %d", table, got.Lookups, got.Hits, hits)
		}
	}
}

// wantShapes compares the masks of a switch's megaflows.
func wantShapes(t *testing.T, r *rig, want string) {
	t.Helper()
	if got := fmt.Sprint(r.sw.CacheShapes()); got != want {
		t.Errorf("shapes %s, want %s", got, want)
	}
}

// tableOf is what dump-tables shows of a table.
func (r *rig) tableOf(id uint8) telemetry.TableStats {
	for _, t := range r.sw.Tables() {
		if t.ID == id {
			return t
		}
	}
	r.Fatalf("no table %d", id)
	return telemetry.TableStats{}
}

// TestMegaflowsMindTheTTL: a megaflow over a dec_ttl is not for packets whose TTL
// ends there, and what those were is not for others.
func TestMegaflowsMindTheTTL(t *testing.T) {
	r := newMegaflowed(t, 1<<16, threeMegaflows)
	for _, ttl := range []int{1, 1, 1, 64, 64, 64, 2, 1, 64} {
		out := r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=%d,udp_src=1000,udp_dst=53", ttl))
		if ttl == 1 && len(out) != 0 || ttl > 1 && (len(out) != 1 || int(out[0].frame[22]) != ttl-1) {
			t.Errorf("TTL %d came out as %v", ttl, out)
		}
	}
	if n := r.drops()["drop ttl in 1"]; n != 4 {
		t.Errorf("%d packets died of their TTL, want 4: %v", n, r.drops())
	}
}

// TestMegaflowsFollowChanges: a change voids the megaflows through its table and
// no others.
func TestMegaflowsFollowChanges(t *testing.T) {
	r := newMegaflowed(t, 1<<16, threeMegaflows+"\ntable=9,priority=1 actions=drop")
	send := func() { r.send("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=1000,udp_dst=53") }
	apply := func(text string) {
		e := r.program(text).Entries
		r.check(r.sw.Apply(&flow.Bundle{Add: e}))
	}
	for range 3 {
		send()
		r.conntrack.Flush()
	}
	for _, c := range []struct {
		change string
		missed uint64
	}{
		{"table=9,priority=5,ip actions=output:4", 0},
		{"table=4,priority=9,tcp actions=drop", 1},
		{"table=1,priority=9,ip,nw_dst=10.0.0.8 actions=drop\ntable=3,priority=9,tcp actions=drop", 2},
	} {
		apply(c.change)
		for i, want := range []uint64{c.missed, c.missed, 0} {
			if n := r.counted(telemetry.MegaflowMiss, send); n != want && i != 1 {
				t.Errorf("after %q packet %d walked %d megaflows, want %d", c.change, i, n, want)
			}
			r.conntrack.Flush()
		}
	}
	apply("table=1,priority=9,ip,nw_dst=10.0.0.9 actions=drop")
	if out := r.send("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=1000,udp_dst=53"); len(out) != 0 {
		t.Errorf("%d packets passed an entry that drops them", len(out))
	}
}

// TestShapesHaveABound: whoever varies what entries ask for neither makes the
// packets of others dearer nor their shapes wider.
func TestShapesHaveABound(t *testing.T) {
	var flows strings.Builder
	const masks = 24
	for i := range masks { // each more entry is asked only if the bits above were not
		fmt.Fprintf(&flows, "table=0,priority=%d,udp,nw_dst=%d.0.0.0/%d,tp_dst=%d actions=output:3\n", 1000-i, 64+i, 8+i%24, 7000+i)
	}
	flows.WriteString("table=0,priority=2000,udp,in_port=1,tp_dst=53 actions=output:4\ntable=0,priority=1500,udp,in_port=1 actions=output:3")
	r := newMegaflowed(t, 1<<16, flows.String())
	plain := func(n int) {
		for i := range n {
			r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,nw_ttl=64,udp_src=%d,udp_dst=53", 1000+i))
		}
	}
	plain(50)
	for range 3 {
		for i := range masks {
			for port := range 6 {
				r.send(fmt.Sprintf("udp,in_port=2,nw_src=10.0.0.2,nw_dst=%d.0.0.0,udp_src=%d,udp_dst=%d", 64+i, 1000+port, 7000+i-port))
			}
		}
	}
	if st := r.sw.Cache(); st.Shapes > 6 || st.Shapes < 2 {
		t.Errorf("%d shapes: %+v", st.Shapes, st)
	}
	if n := r.counted(telemetry.MegaflowMiss, func() { plain(50) }); n != 0 {
		t.Errorf("%d packets of others walked", n)
	}
}

// TestMegaflowsShare: a port with more megaflows than there is room for displaces
// its own only.
func TestMegaflowsShare(t *testing.T) {
	var flows strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&flows, "table=0,priority=5,udp,tp_dst=%d actions=output:4\n", 1000+i)
	}
	r := newMegaflowed(t, 512, flows.String())
	flood := func() {
		for i := range 2000 {
			r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,udp_src=1,udp_dst=%d", 1000+i))
		}
	}
	quiet := func() {
		for i := range 50 {
			r.send(fmt.Sprintf("udp,in_port=2,nw_src=10.0.0.2,nw_dst=10.0.0.9,udp_src=1,udp_dst=%d", 3000+i))
		}
	}
	r.check(r.sw.Apply(&flow.Bundle{Add: r.program("table=0,priority=6,udp,in_port=2 actions=output:4").Entries}))
	for range 4 {
		quiet()
	}
	for range 3 {
		flood()
	}
	if n := r.counted(telemetry.MegaflowMiss, quiet); n != 0 {
		t.Errorf("%d of 50 packets of a quiet port walked", n)
	}
	if st := r.sw.Cache(); st.Megaflows > 512 || st.Events[telemetry.MegaflowDisplaced] == 0 {
		t.Errorf("there was no need to share: %+v", st)
	}
}

// TestMegaflowsOweNothing: packets that replayed megaflows are credited even if the megaflows are
// displaced, voided and dropped, in one batch or between two. Meanwhile other goroutines read
// counters all the time.
func TestMegaflowsOweNothing(t *testing.T) {
	const ports, each, rounds = 2000, 5, 4
	var flows strings.Builder
	for i := range ports {
		fmt.Fprintf(&flows, "table=0,priority=5,udp,tp_dst=%d actions=goto_table:1\n", 1000+i)
	}
	r := newMegaflowed(t, 512, flows.String()+"table=1,ip actions=output:4")
	var batch []*packet.Frame
	for i := range ports * each {
		_, frame := r.compose(fmt.Sprintf("udp,nw_src=10.0.0.1,nw_dst=10.0.0.9,udp_src=1,udp_dst=%d", 1000+i/each))
		batch = append(batch, packet.NewFrame(make([]byte, packet.Headroom+256), nil))
		batch[i].SetBytes(frame)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
				r.sw.Tables()
			}
		}
	}()
	taken := make([]*packet.Frame, 64)
	for round := range rounds {
		for i := 0; i < len(batch); i += 40 {
			if i%2000 == 1000 { // voids some
				r.check(r.sw.Apply(&flow.Bundle{Add: r.program(fmt.Sprintf("table=1,priority=%d,arp actions=drop", 1+i)).Entries}))
			}
			r.ports[1].Inject(batch[i : i+40]...)
			r.sw.Poll()
			if n := r.ports[4].Collect(taken); n != 40 {
				t.Fatalf("round %d: of 40 packets %d arrived", round, n)
			}
		}
		// The first entry that learns forgets all.
		r.check(r.sw.Apply(&flow.Bundle{Add: r.program(fmt.Sprintf("table=%d,arp actions=learn(table=%d,idle_timeout=9,eth_type=0x800,load:1->NXM_NX_REG0[])", 3+round, 10+round)).Entries}))
	}
	close(over)
	<-done
	if st := r.sw.Cache(); st.Events[telemetry.MegaflowHit] == 0 || st.Events[telemetry.MegaflowDisplaced] == 0 || st.Events[telemetry.MegaflowVoid] == 0 {
		t.Errorf("no megaflows were taken, displaced or voided: %+v", st)
	}
	for _, f := range r.sw.Flows() {
		if f.Table == 0 && f.Packets != each*rounds || f.Table == 1 && f.Priority == 32768 && f.Packets != ports*each*rounds {
			t.Fatalf("%v counts %d packets", f.Entry, f.Packets)
		}
	}
	if got := r.tableOf(1); got.Hits != ports*each*rounds || got.Lookups != got.Hits {
		t.Errorf("table 1 counts %+v", got)
	}
}

// TestMegaflowsAllocateNothing: neither packets that take megaflows nor those
// that are unlike all others.
func TestMegaflowsAllocateNothing(t *testing.T) {
	r := newMegaflowed(t, 512, threeMegaflows)
	frames := make([][]byte, 3000)
	for i := range frames {
		_, frames[i] = r.compose(fmt.Sprintf("udp,nw_src=10.0.%d.%d,nw_dst=10.0.0.9,nw_ttl=64,udp_src=1000,udp_dst=%d", i/200, i%200, 53+i%7))
	}
	one, next := []*packet.Frame{packet.NewFrame(make([]byte, packet.Headroom+256), nil)}, 0
	pass := func() {
		one[0].SetBytes(frames[next%len(frames)])
		next++
		r.ports[1].Inject(one...)
		r.sw.Poll()
		for _, p := range r.ports {
			p.Collect(one)
		}
	}
	for range 2 * len(frames) {
		pass()
	}
	if n := testing.AllocsPerRun(3000, pass); n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// TestMegaflowsMindWhatIsLearned: a megaflow passes a table that can learn entries
// while it has none. The first one voids it, for the packet that made it too, and
// when the last is gone the table is passed by a megaflow again.
func TestMegaflowsMindWhatIsLearned(t *testing.T) {
	r := newMegaflowed(t, 1<<16, `
		table=0,priority=5,udp,tp_dst=53 actions=learn(table=4,idle_timeout=9,priority=5,eth_type=0x800,NXM_OF_IP_SRC[],load:0x7->NXM_NX_REG1[]),resubmit(,3),resubmit(,5)
		table=0,priority=1,ip actions=resubmit(,3),resubmit(,5)
		table=4,priority=1,ip actions=set_field:0x1->reg2
		table=3,ip actions=goto_table:4
		table=5,reg1=0 actions=output:2
		table=5,reg1=7 actions=output:3`)
	send := func(client, port int, want uint32, megaflows uint64) {
		t.Helper()
		n := r.counted(telemetry.MegaflowHit, func() {
			out := r.send(fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.%d,nw_dst=10.0.0.9,nw_ttl=64,udp_src=1000,udp_dst=%d", client, port))
			if len(out) != 1 || out[0].port != want {
				t.Fatalf("from client %d to port %d: %v, want port %d", client, port, out, want)
			}
		})
		if n != megaflows {
			t.Errorf("from client %d to port %d: %d megaflows were taken, want %d", client, port, n, megaflows)
		}
	}
	send(1, 80, 2, 0)
	send(1, 80, 2, 0) // what comes once is not remembered
	send(1, 80, 2, 1)
	send(2, 53, 3, 0) // meets the entry that it has just made
	send(2, 80, 3, 0)
	send(1, 80, 2, 0)
	send(1, 80, 2, 1) // to the first resubmit(), within which table 4 is looked up now
	send(1, 80, 2, 3) // and table 3, and table 5
	*r.now += 20e9
	r.sw.Expire()
	send(2, 80, 2, 3)
	send(2, 80, 2, 3)
	send(2, 80, 2, 4) // table 4 has a megaflow of its own
}

// TestMegaflowsFollowAllTables: a change of any table, in whichever quarter of them it
// is, counts for the packets that took megaflows through it.
func TestMegaflowsFollowAllTables(t *testing.T) {
	for _, id := range []int{1, 63, 64, 130, 254} {
		r := newMegaflowed(t, 1<<16, fmt.Sprintf("table=0,ip actions=goto_table:%d\ntable=%[1]d,priority=1,ip actions=output:4", id))
		send := func() []sent { return r.send("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.9,udp_src=1000,udp_dst=53") }
		send()
		send()
		if n := r.counted(telemetry.MegaflowHit, func() { r.wantPorts(send(), 4) }); n != 1 {
			t.Errorf("table %d: %d megaflows were taken, want 1", id, n)
		}
		r.check(r.sw.Apply(&flow.Bundle{Add: r.program(fmt.Sprintf("table=%d,priority=2,ip actions=output:2", id)).Entries}))
		r.wantPorts(send(), 2)
	}
}

// TestMegaflowsOweNothingOfABatch: the packets of a batch are credited even if their megaflow
// goes in the same batch. Its place is in a memory that becomes too small.
func TestMegaflowsOweNothingOfABatch(t *testing.T) {
	const others = 300 // more than half of what there is room for at first
	var flows strings.Builder
	for i := range others + 1 {
		fmt.Fprintf(&flows, "table=0,priority=%d,udp,tp_dst=%d actions=output:4\n", 5+min(i, 1), 1000+i)
	}
	r := newMegaflowed(t, 1<<16, flows.String())
	give := func(ports ...int) {
		var batch []*packet.Frame
		for _, port := range ports {
			_, frame := r.compose(fmt.Sprintf("udp,nw_src=10.0.0.1,nw_dst=10.0.0.9,udp_src=1,udp_dst=%d", 1000+port))
			f := packet.NewFrame(make([]byte, packet.Headroom+256), nil)
			f.SetBytes(frame)
			batch = append(batch, f)
		}
		r.ports[1].Inject(batch...)
		r.sw.Poll()
		r.collect()
	}
	for i := range others {
		give(0, 1+i)
	}
	if n := r.counted(telemetry.MegaflowHit, func() {
		for i := range others {
			give(0, 1+i)
		}
	}); n < others-9 {
		t.Fatalf("%d megaflows were taken", n)
	}
	if got := r.packets(0); got[5] != 2*others || got[6] != 2*others {
		t.Errorf("the entries count %v packets, want %d each", got, 2*others)
	}
}
