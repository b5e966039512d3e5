package dataplane_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
)

// TestOneWayOffloadsChangeNothing is TestOffloadsChangeNothing for UDP of which most is never
// answered. Its packets are new: each passes the policies.
func TestOneWayOffloadsChangeNothing(t *testing.T) {
	sources := map[string]twinSource{
		"antrea": twinSources(t)["antrea"], "rewrites": rewritesSource(t),
		"tunnel": tunnelSource(t, false), "tunnel over IPv6": tunnelSource(t, true),
		"gateway": gatewaySource(t, false), "gateway over IPv6": gatewaySource(t, true),
	}
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			taken, unanswered, answered := 0, 0, 0
			little := func() bool { return taken < 500 || unanswered < 100 || answered < 10 }
			for i := range rounds(8, little) {
				k := newTrial(t)
				k.kind, k.over6 = tunnel.Kind(i/3%3), s.over6
				w := newTwins(t, seed+i, s, k)
				w.calm, w.oneWay = true, true
				for range 60 {
					w.walk(50, s.to)
					one, both := w.rigs[0].offloadedDatagrams()
					unanswered, answered = unanswered+one, answered+both
				}
				if st := w.rigs[0].sw.OffloadStats(); st.Dropped != 0 {
					t.Errorf("%d packets were lost", st.Dropped)
				}
				taken += k.taken
			}
			t.Logf("%d packets were offloaded; of connections, seen now and then, %d were not answered and %d were", taken, unanswered, answered)
			if little() {
				t.Error("this proves little")
			}
		})
	}
}

// offloadedDatagrams counts the offloaded connections of UDP by whether they were answered.
// The kernel's packets keep both kinds near their full timeout.
func (r *rig) offloadedDatagrams() (unanswered, answered int) {
	for c := range r.conntrack.Dump(conntrack.Filter{}) {
		switch {
		case !c.Offloaded || c.Orig.Proto != packet.ProtoUDP:
		case c.Timeout <= 30*time.Second:
			unanswered++
		default:
			answered++
		}
	}
	return unanswered, answered
}

// TestReplyEndsOneWayOffload: once a reply has passed the switch, the kernel takes no more
// packets as new ones. As established ones it takes them later.
func TestReplyEndsOneWayOffload(t *testing.T) {
	r, k := offloadRig(t)
	there := offer{port: 1, frame: packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("note")})}
	back := offer{port: 2, frame: packettest.UDP4(packettest.Options{
		Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: 1000, Payload: []byte("answer"),
	})}
	send := func(o offer) (taken bool) {
		_, taken = k.receive(t, o)
		if !taken {
			r.sendFrame(o.port, o.frame)
		}
		return taken
	}
	for range 8 {
		send(there)
	}
	if !send(there) {
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	if one, both := r.offloadedDatagrams(); one != 1 || both != 0 {
		t.Errorf("%d connections without an answer and %d with one are offloaded", one, both)
	}
	if send(back) {
		t.Error("the kernel took a reply that the switch has not seen")
	}
	if send(there) {
		t.Error("the kernel took a packet as new after the reply")
	}
	for range 16 {
		send(back)
		send(there)
	}
	if !send(back) || !send(there) {
		t.Errorf("the answered connection was not taken: %+v", r.sw.OffloadStats())
	}
}

// TestOneWayLeavesRoom: connections without an answer take no more than a port's part, and
// answered ones of the same port take their places.
func TestOneWayLeavesRoom(t *testing.T) {
	r, k := offloadRig(t)
	if !r.talk(1000, 8) { // both ports have an entry
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	for i := range k.kernel.Room() {
		for range 8 {
			o := offer{port: 1, frame: packettest.UDP4(packettest.Options{SrcPort: uint16(10000 + i), Payload: []byte("note")})}
			if _, ok := k.receive(t, o); !ok {
				r.sendFrame(o.port, o.frame)
			}
		}
	}
	st, room := r.sw.OffloadStats(), k.kernel.Room()
	if st.Entries != uint64(room/2+1) || st.Events[telemetry.OffloadNoRoom] == 0 {
		t.Errorf("there are %d entries of %d: %+v", st.Entries, room/2+1, st)
	}
	for i := range room / 4 {
		if !r.talk(2000+i, 64) {
			t.Fatalf("%d answered connections were taken: %+v", i, r.sw.OffloadStats())
		}
	}
	if one, both := r.offloadedDatagrams(); both != 1+room/4 || one > room/2-room/4 {
		t.Errorf("%d connections without an answer and %d with one are offloaded", one, both)
	}
}

// TestLastPacketsRestartTimeout: what the kernel forwarded before a connection made room for
// another restarts its timeout before anybody reads the connections.
func TestLastPacketsRestartTimeout(t *testing.T) {
	r, k := offloadRig(t)
	note := func(i int) {
		o := offer{port: 1, frame: packettest.UDP4(packettest.Options{SrcPort: uint16(10000 + i), Payload: []byte("note")})}
		if _, ok := k.receive(t, o); !ok {
			r.sendFrame(o.port, o.frame)
		}
	}
	if !r.talk(1000, 8) { // both ports have an entry
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	for i := range 8 * k.kernel.Room() {
		note(i / 8)
	}
	entries := r.sw.OffloadStats().Entries
	*r.now += 1e6
	for i := range k.kernel.Room() {
		note(i)
	}
	if !r.talk(2000, 64) { // its entry takes the place of one of these
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	if n := r.sw.OffloadStats().Entries; n > entries+1 { // one begins at port 2
		t.Errorf("%d entries were %d before: no room was made", n, entries)
	}
	for c := range r.conntrack.Dump(conntrack.Filter{}) {
		if c.Orig.SrcPort >= 10000 && c.Timeout != 30*time.Second {
			t.Errorf("%v expires in %v, but a packet has just passed", &c, c.Timeout)
		}
	}
}

// TestLearningWithdraws: packets whose walk could meet a learned entry are the kernel's until
// an entry is learned, and again after that.
func TestLearningWithdraws(t *testing.T) {
	r, k := offloadRig(t)
	r.check(r.sw.Apply(flow.BundleOf(r.parse(parse.Sources{Flows: parse.Text("flows", `
		table=0,priority=2,tcp actions=learn(table=1,hard_timeout=60,priority=9,eth_type=0x800,nw_proto=17,NXM_OF_IP_SRC[],load:0x1->NXM_NX_REG1[])
		table=0,priority=1,ip actions=ct(table=1,zone=10)
		table=1,priority=1 actions=resubmit(,2)
		table=2,priority=2,ct_state=+new+trk,ip actions=ct(commit,table=3,zone=10)
		table=2,priority=1 actions=goto_table:3
		table=3,priority=1,in_port=1 actions=output:2
		table=3,priority=1,in_port=2 actions=output:1`)}))))
	if !r.talk(1000, 8) {
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	other := packettest.Options{Src: packettest.Addr("10.0.0.9"), TCPFlags: packet.TCPSyn}
	r.sendFrame(1, packettest.TCP4(other))
	before := k.taken
	there := packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	if _, taken := k.receive(t, offer{port: 1, frame: there}); taken || k.taken != before {
		t.Error("the kernel took a packet that a learned entry might match")
	}
	if !r.talk(1000, 64) {
		t.Errorf("nothing was taken after that: %+v", r.sw.OffloadStats())
	}
	r.sendFrame(1, packettest.TCP4(packettest.Options{Src: packettest.Addr("10.0.0.8"), TCPFlags: packet.TCPSyn}))
	r.sw.Tend()
	if st := r.sw.OffloadStats(); st.Entries != 0 || st.Connections != 0 {
		t.Errorf("withdrawn entries stay: %+v", st)
	}
}
