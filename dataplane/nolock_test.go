package dataplane_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
)

// knownFlows has a flow for each thing that workers share: learned addresses and
// entries, a meter, groups, copies, connections, with a walk and from the cache.
const knownFlows = `
	table=0,priority=9,udp,tp_src=1000 actions=NORMAL
	table=0,priority=9,udp,tp_src=1001 actions=meter:1,output:2
	table=0,priority=9,udp,tp_src=1002 actions=meter:2,output:2
	table=0,priority=9,udp,tp_src=1003 actions=learn(table=3,idle_timeout=9,priority=5,eth_type=0x800,nw_proto=17,NXM_OF_IP_SRC[],load:7->NXM_NX_REG1[]),resubmit(,3),goto_table:4
	table=0,priority=9,udp,tp_src=1004 actions=group:1
	table=0,priority=9,udp,tp_src=1005 actions=clone(output:2),output:3
	table=0,priority=9,udp,tp_src=1006 actions=drop
	table=0,priority=9,udp,tp_src=1007 actions=ct(table=1,zone=5,nat)
	table=0,priority=9,udp,tp_src=1008 actions=clone(output:3),ct(table=1,zone=5,nat)
	table=1,priority=9,ct_state=+new+trk,ip actions=ct(commit,table=2,zone=5,nat(src=10.1.0.1-10.1.0.9),exec(set_field:3->ct_mark))
	table=1,priority=1 actions=goto_table:2
	table=2,priority=1 actions=output:2
	table=4,priority=5,reg1=7 actions=output:3`

// TestKnownPacketsMeetNoLock holds the switch's locks while packets pass of which all
// is known: of each flow as many leave as before. A packet that has something new to
// write waits.
func TestKnownPacketsMeetNoLock(t *testing.T) {
	r := newRigOf(t, sourcesOf(knownFlows, "group_id=1,type=select,bucket=actions=output:2,bucket=actions=output:3",
		"meter=1 pktps bands=\ntype=drop rate=1000000\nmeter=2 pktps bands=\ntype=drop rate=1"))
	udp := func(port, src int) string {
		return fmt.Sprintf("in_port=%d,udp,dl_src=02:00:00:00:00:0%d,dl_dst=02:00:00:00:00:0%d,nw_src=10.0.0.%d,nw_dst=10.0.0.9,udp_src=%d,udp_dst=9", port, port, 3-port, port, src)
	}
	flows := []struct {
		port, src int
		leave     int // frames
	}{{1, 1000, 1}, {2, 1000, 1}, {1, 1001, 1}, {1, 1002, 0}, {1, 1003, 1}, {1, 1004, 1}, {1, 1005, 2}, {1, 1006, 0}, {1, 1007, 1}, {1, 1008, 2}}
	flood := r.fillMACs(4, "in_port=4,udp,dl_dst=02:00:00:00:00:01,udp_src=1000")
	full := r.macsOf(4).Full
	r.check(r.sw.SecurePort(2, l2.PortSecurity{MACs: []packet.MAC{{2, 5: 2}}}))
	for range 4 { // until the cache has them too
		for _, c := range flows {
			r.send(udp(c.port, c.src))
		}
	}
	r.send(udp(3, 1000)) // a station that is about to move
	*r.now += 2e9        // ages restart
	r.send(udp(1, 1002)) // its meter is empty now
	hits := r.sw.Cache().Events[telemetry.CacheHit]
	var waited atomic.Bool
	release := r.sw.HoldLocks()
	watch := time.AfterFunc(20*time.Second, func() { waited.Store(true); release() })
	pass := func(text string, want int) {
		t.Helper()
		for range 40 {
			if out := r.send(text); len(out) != want {
				t.Fatalf("%s: %d frames left, want %d", text, len(out), want)
			}
			if waited.Load() {
				t.Fatalf("%s: it waits for a lock", text)
			}
		}
	}
	for _, c := range flows {
		pass(udp(c.port, c.src), c.leave)
	}
	pass("in_port=4,udp,dl_src=02:00:00:00:00:03,dl_dst=02:00:00:00:00:01,udp_src=1000", 1) // it moves
	pass("in_port=4,udp,dl_src=02:00:00:00:00:02,dl_dst=02:00:00:00:00:01,udp_src=1000", 1) // another port's own
	flood(40)
	if waited.Load() {
		t.Fatal("an address that the port has no share for waits for a lock")
	}
	if n := r.sw.Cache().Events[telemetry.CacheHit] - hits; n < 40 && !*walktest.All {
		t.Errorf("%d packets were replayed", n)
	}
	in, frame := r.compose("in_port=1,udp,nw_src=10.0.0.77,udp_src=1003") // a client that nothing was learned of
	learned := make(chan struct{})
	go func() { r.sendFrame(in, frame); close(learned) }()
	time.Sleep(20 * time.Millisecond)
	select {
	case <-learned:
		t.Error("an entry was learned, and the lock was held: the locks are not those that writers take")
	default:
	}
	watch.Stop()
	release()
	<-learned
	if got := r.macsOf(4); got.Full != full+40 || got.Foreign != 40 {
		t.Errorf("port 4 has %+v", got)
	}
}

// fillMACs sends frames from ever new addresses until the port's share of the learned
// ones is full. The function it returns sends more of them.
func (r *rig) fillMACs(no uint32, text string) (flood func(n int)) {
	in, frame := r.compose(text)
	sent := 0
	flood = func(n int) {
		for range n {
			sent++
			frame[6], frame[10], frame[11] = 6, byte(sent>>8), byte(sent)
			r.sendFrame(in, frame)
		}
	}
	for r.macsOf(no).Full == 0 {
		flood(1)
	}
	return flood
}

// macsOf is what NORMAL learned at a port.
func (r *rig) macsOf(no uint32) (stats telemetry.MACStats) {
	for _, p := range r.sw.Ports() {
		if p.No == no {
			stats = p.MACs
		}
	}
	return stats
}
