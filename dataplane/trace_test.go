package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// trace watches a frame's walk.
func (r *rig) trace(in uint32, frame []byte) *telemetry.Trace {
	r.Helper()
	tr, err := r.sw.Trace(&telemetry.TraceRequest{InPort: in, Frame: frame})
	r.check(err)
	return tr
}

// text is a trace as people read it.
func text(t testing.TB, tr *telemetry.Trace) string {
	t.Helper()
	var b strings.Builder
	if err := tr.WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden is the trace of a small pipeline: a call that returns, conntrack's
// answer, a rewrite, an output.
const golden = `Packet: tcp,in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1000,tp_dst=80,tcp_flags=syn

 0. Classifier: ip,in_port=1, priority 200
    resubmit(,Mark)

     1. Mark: priority 1
        set_field:0x3/0xf->reg0
          -> reg0=0x3
    goto_table:Conntrack

 2. Conntrack: ip, priority 7
    ct(commit,table=Output,zone=65520,exec(set_field:0x5->ct_mark))
      -> ct_state=new|trk,ct_zone=0xfff0,ct_mark=0x5,ct_label=0

 3. Output: ct_state=+new+trk,tcp,reg0=0x3/0xf, priority 200
    set_field:8080->tcp_dst
      -> tcp_dst=8080
    output:2
      -> leaves by port 2
      -> as tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1000,tp_dst=8080,tcp_flags=syn

Verdict: output to port 2
`

// TestTraceText compares a whole trace with what an operator should read.
func TestTraceText(t *testing.T) {
	r := newRig(t, `
		table=Classifier,priority=200,ip,in_port=1 actions=resubmit(,Mark),goto_table:Conntrack
		table=Mark,priority=1 actions=set_field:0x3/0xf->reg0
		table=Conntrack,priority=7,ip actions=ct(commit,zone=65520,exec(set_field:0x5->ct_mark),table=Output)
		table=Output,priority=200,ct_state=+new+trk,tcp,reg0=0x3/0xf actions=set_field:8080->tcp_dst,output:2
		table=Output,priority=0 actions=drop`)
	in, frame := r.compose(anyTCP)
	if got := text(t, r.trace(in, frame)); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
}

// TestTraceLeavesNoMark traces packets that would learn, commit, count and be
// sent, and compares everything that dumps show before and after.
func TestTraceLeavesNoMark(t *testing.T) {
	r := newRigOf(t, sourcesOf(`
		table=0,ip actions=meter:1,learn(table=1,eth_type=0x800,NXM_OF_IP_SRC[]),resubmit(,1),ct(commit,zone=5,nat(dst=1.2.3.4),table=2)
		table=0,priority=1 actions=NORMAL
		table=1,priority=0 actions=clone(controller),group:1
		table=2,ip actions=output:3`,
		"group_id=1,type=select,bucket=actions=output:2", "meter=1 pktps bands=\ntype=drop rate=1"))
	state := func() string {
		return fmt.Sprint(r.sw.Flows(), r.sw.Groups(), r.sw.Meters(), r.sw.Tables(), r.sw.Ports(), r.sw.LearnedMACs(), r.sw.Drops(), r.connections())
	}
	before := state()
	for _, packet := range []string{anyTCP, anyTCP, ethernet(1, 0xa, 0xb)} {
		in, frame := r.compose(packet)
		if v := r.trace(in, frame).Verdict; len(v.Outputs) == 0 {
			t.Errorf("%s: %s", packet, v.Text(nil))
		}
	}
	r.sw.Poll()
	if after := state(); after != before {
		t.Errorf("a trace left a mark: now\n%s\nwas\n%s", after, before)
	}
	r.wantPorts(r.collect())
	if len(r.packetIns) != 0 {
		t.Error("a trace sent a packet-in")
	}
}

// TestTraceSeesConnections traces the second packet of a connection.
func TestTraceSeesConnections(t *testing.T) {
	e := newEstablished(t)
	client, _ := e.sw.Names().PortID("client-a")
	got := text(t, e.trace(client, e.there))
	if !strings.Contains(got, "ct_state=est|trk") {
		t.Errorf("the connection is not seen:\n%s", got)
	}
	if !strings.Contains(got, "AntreaPolicyIngressRule: ") || !strings.Contains(got, "priority 64990") {
		t.Errorf("the trace did not take the entry of established connections:\n%s", got)
	}
}

// TestTraceStranger traces a packet of a connection as if it were the first of a
// new one, whatever the limits are.
func TestTraceStranger(t *testing.T) {
	r := newRig(t, `
		table=0,priority=9,ct_state=-trk,ip actions=ct(table=0,zone=5)
		table=0,priority=8,ct_state=+new,tcp actions=ct(commit,zone=5),output:2
		table=0,priority=7,ct_state=+est,ip actions=output:3
		table=0,priority=0 actions=drop`)
	in, frame := r.compose(anyTCP)
	stranger := func() telemetry.Verdict {
		t.Helper()
		tr, err := r.sw.Trace(&telemetry.TraceRequest{InPort: in, Frame: frame, Stranger: true})
		if err != nil {
			t.Fatal(err)
		}
		return tr.Verdict
	}
	r.sendFrame(in, frame)
	before := r.connections()
	r.conntrack.SetMax(0)
	if v := stranger(); !slices.Equal(v.Outputs, []uint32{2}) {
		t.Errorf("a stranger: %s", v.Text(nil))
	}
	if after := r.connections(); !slices.Equal(after, before) || len(after) != 1 {
		t.Errorf("connections were %v and are %v", before, after)
	}
}

// TestTraceErrors checks what cannot be traced.
func TestTraceErrors(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	if _, err := r.sw.Trace(&telemetry.TraceRequest{Frame: make([]byte, 13)}); err == nil {
		t.Error("a runt was traced")
	}
	if _, err := newRigOf(t, sourcesOf("", "", "")).sw.Trace(&telemetry.TraceRequest{Frame: make([]byte, 14)}); err == nil {
		t.Error("a switch without a pipeline traced")
	}
}

// TestTraceIsWhatTrafficDoes traces random packets and then sends them: the
// same ports, the same bytes, the same drop in the same table.
func TestTraceIsWhatTrafficDoes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 4))
	r := newExample(t, "two-nodes/node-a")
	sentSome, dropped := 0, 0
	for i := range 1000 {
		packet := randomTwoNodes(rnd)
		in, frame := r.compose(packet)
		tr := r.trace(in, frame)
		drops := r.drops()
		out := r.sendFrame(in, frame)
		if want := tracedFrames(tr); !slices.EqualFunc(out, want, sameFrame) {
			t.Fatalf("packet %d (%s): left as %v, the trace said %v\n%s", i, packet, out, want, text(t, tr))
		}
		if tr.Verdict.Reason != telemetry.NotDropped {
			dropped++
			what := fmt.Sprintf("drop %s in %d", tr.Verdict.Reason, tr.Verdict.Table)
			if r.drops()[what] != drops[what]+1 {
				t.Fatalf("packet %d (%s): the trace said %s, drops are %v, were %v", i, packet, what, r.drops(), drops)
			}
		}
		sentSome += len(out)
	}
	if sentSome < 100 || dropped < 100 {
		t.Errorf("%d frames sent and %d packets dropped of 1000: the packets are badly chosen", sentSome, dropped)
	}
}

// tracedFrames is what a trace says leaves, by port.
func tracedFrames(tr *telemetry.Trace) (out []sent) {
	for i := range tr.Steps {
		if st := &tr.Steps[i]; st.Kind == telemetry.StepOutput {
			out = append(out, sent{port: st.Port, frame: st.Frame, tunnel: st.Tunnel})
		}
	}
	slices.SortStableFunc(out, func(a, b sent) int { return int(a.port) - int(b.port) })
	return out
}

// sameFrame compares frames that left; the tunnel only where there is one.
func sameFrame(a, b sent) bool {
	return a.port == b.port && string(a.frame) == string(b.frame) && (b.tunnel.Dst == a.tunnel.Dst || !b.tunnel.Dst.IsValid())
}

// randomTwoNodes is a packet of the lab's pods in flow syntax, some forged, so
// that connections begin, go on and are denied.
func randomTwoNodes(r *rand.Rand) string {
	pick := func(v ...string) string { return v[r.IntN(len(v))] }
	type end struct{ port, mac, ip string }
	ends := []end{
		{"client-a", "5e:b5:e3:a6:90:b7", "10.10.0.26"}, {"web-a", "fa:b7:53:74:21:a6", "10.10.0.24"},
		{"db-a", "36:48:21:a2:9d:b4", "10.10.0.25"}, {"antrea-gw0", "ba:5e:d1:55:aa:c0", "10.10.0.1"},
		{"antrea-tun0", "aa:bb:cc:dd:ee:ff", "10.10.1.6"},
	}
	from, to := ends[r.IntN(len(ends))], ends[r.IntN(len(ends))]
	if r.IntN(10) == 0 {
		from.mac = to.mac
	}
	if r.IntN(8) == 0 {
		return fmt.Sprintf("arp,in_port=%q,dl_src=%s,dl_dst=%s,arp_spa=%s,arp_tpa=%s,arp_sha=%s,arp_op=1", from.port, from.mac,
			pick("ff:ff:ff:ff:ff:ff", to.mac), from.ip, pick(to.ip, "10.10.1.1"), from.mac)
	}
	dst := pick(to.ip, to.ip, to.ip, "10.96.0.24", "10.105.31.235", "10.96.76.15", "10.101.255.29", "8.8.8.8")
	ports := pick("tcp_src=1000,tcp_dst=80", "tcp_src=80,tcp_dst=1000", "tcp_src=1001,tcp_dst=3306", "tcp_src=3306,tcp_dst=1001")
	return fmt.Sprintf("in_port=%q,tcp,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=%s,%s,tcp_flags=%s", from.port, from.mac,
		pick(to.mac, "ba:5e:d1:55:aa:c0"), from.ip, dst, pick("64", "64", "1"), ports, pick("+syn", "+syn+ack", "+ack", "+fin+ack"))
}
