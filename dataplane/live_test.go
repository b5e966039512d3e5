package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// wantAll is a filter that wants every packet.
func wantAll(frame []byte, inPort uint32) bool { return true }

// watch begins a live trace that ends with the test.
func (r *rig) watch(req dataplane.LiveRequest) *dataplane.LiveTrace {
	r.Helper()
	l := r.arm(req)
	r.Cleanup(l.Close)
	return l
}

// arm begins a live trace, which is to be closed.
func (r *rig) arm(req dataplane.LiveRequest) *dataplane.LiveTrace {
	r.Helper()
	l, err := r.sw.TraceLive(req)
	r.check(err)
	return l
}

// taken is what a live trace has now.
func taken(t testing.TB, l *dataplane.LiveTrace) (all []*telemetry.Trace) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	for c := l.Counts(); len(all) < int(c.Told); {
		tr, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	if _, err := l.Next(now); err == nil {
		t.Error("more walks came than were counted")
	}
	return all
}

// TestLiveChangesNothing is TestCacheChangesNothing for a switch whose packets
// are watched now and then, by one live trace or two, with offload entries where the
// process may: what leaves is the same byte by byte, and all that is counted and
// tracked is the same.
func TestLiveChangesNothing(t *testing.T) {
	sources := twinSources(t)
	sources["rewrites"] = rewritesSource(t)
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			told := uint64(0)
			little := func() bool { return told < 300*testsize.Rounds(uint64(6)) }
			for i := range rounds(6, little) {
				var k *trial
				if os.Geteuid() == 0 && name != "all sorts" {
					k = newTrial(t)
				}
				w := newTwins(t, seed+i, s, k)
				w.calm = k != nil
				for range 30 {
					l := w.watchSome()
					w.walk(60, s.to)
					told += l.Counts().Told
					l.Close()
					w.walk(20, s.to)
				}
			}
			if little() {
				t.Errorf("%d packets were watched: this proves little", told)
			}
		})
	}
}

// watchSome begins a live trace of some packets at the first switch.
func (w *twins) watchSome() *dataplane.LiveTrace {
	w.Helper()
	one, parts := w.rnd.IntN(3), 1+w.rnd.IntN(3)
	req := dataplane.LiveRequest{
		Match: func(b []byte, _ uint32) bool {
			l := packet.ParseLayers(b)
			return l.L4 == 0 || l.End < l.L4+4 || int(b[l.L4+1]^b[l.L4+3])%parts == one%parts
		},
	}
	if w.rnd.IntN(4) == 0 {
		req.Keep = onlyDropped
	}
	w.history = append(w.history, fmt.Sprintf("live trace of one part of %d", parts))
	l, err := w.rigs[0].sw.TraceLive(req)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// TestLiveIsWhatTrafficDoes watches random packets: each walk says what left, by
// which ports, with which bytes, or why nothing did.
func TestLiveIsWhatTrafficDoes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 4))
	r := newExample(t, "two-nodes/node-a")
	l := r.watch(dataplane.LiveRequest{Match: wantAll})
	sentSome, dropped := 0, 0
	for i := range 1000 {
		packet := randomTwoNodes(rnd)
		in, frame := r.compose(packet)
		drops := r.drops()
		out := r.sendFrame(in, frame)
		tr, err := l.Next(t.Context())
		r.check(err)
		if want := tracedFrames(tr); !slices.EqualFunc(out, want, sameFrame) {
			t.Fatalf("packet %d (%s): left as %v, the trace said %v\n%s", i, packet, out, want, text(t, tr))
		}
		if a := tr.Live; a.ID != uint64(i)+1 || a.Port != in || string(a.Frame) != string(frame) || a.Len != len(frame) {
			t.Fatalf("packet %d arrived as %+v", i, a)
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

// TestLiveSeesTheCached watches a packet of a connection that is replayed before
// and after.
func TestLiveSeesTheCached(t *testing.T) {
	e := newEstablished(t)
	hits := func() uint64 { return e.sw.Cache().Events[telemetry.CacheHit] }
	for range 8 {
		e.pass(e.client, e.web, e.there)
	}
	before := hits()
	if before == 0 && !*walktest.All {
		t.Fatal("nothing was replayed")
	}
	l := e.watch(dataplane.LiveRequest{Match: wantAll})
	e.pass(e.client, e.web, e.there)
	if hits() != before {
		t.Error("a packet that is watched was replayed")
	}
	all := taken(t, l)
	if len(all) != 1 || len(all[0].Steps) < 20 {
		t.Fatalf("%d walks", len(all))
	}
	web, _ := e.sw.Names().PortID("web-a")
	if v := all[0].Verdict; !slices.Equal(v.Outputs, []uint32{web}) {
		t.Errorf("verdict %+v", v)
	}
	l.Close()
	e.pass(e.client, e.web, e.there)
	if hits() != before+1 && !*walktest.All {
		t.Error("a packet is not replayed after the trace")
	}
}

// TestLiveTakesBack watches a connection that passes in the kernel, and lets it
// go there again.
func TestLiveTakesBack(t *testing.T) {
	r, k := offloadRig(t)
	if !r.talk(1000, 8) || !r.talk(2000, 8) {
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	l := r.watch(dataplane.LiveRequest{Match: func(b []byte, inPort uint32) bool {
		ports := packet.UDP(b[packet.ParseLayers(b).L4:])
		return ports.SrcPort() == 1000 && inPort == 1
	}})
	send := func(sport uint16) bool {
		frame := packettest.UDP4(packettest.Options{SrcPort: sport, Payload: []byte("question")})
		_, taken := k.receive(t, offer{port: 1, frame: frame})
		if !taken {
			r.sendFrame(1, frame)
		}
		return taken
	}
	for range 50 {
		if send(1000) {
			t.Fatal("the kernel takes what is watched")
		}
		if !send(2000) {
			t.Fatal("the kernel does not take what nobody watches")
		}
	}
	if all := taken(t, l); len(all) != 50 || !slices.Equal(all[0].Verdict.Outputs, []uint32{2}) {
		t.Errorf("%d walks", len(all))
	}
	if st := r.sw.OffloadStats(); st.Events[telemetry.OffloadTraced] == 0 {
		t.Errorf("%+v", st)
	}
	l.Close()
	if !r.talk(1000, 8) {
		t.Error("the connection does not go back")
	}
	for i := range 10 { // and that does not take longer each time
		l := r.watch(dataplane.LiveRequest{Match: wantAll})
		send(1000)
		l.Close()
		if !r.talk(1000, 8) {
			t.Fatalf("the connection does not go back after %d more traces", i+1)
		}
	}
}

// TestLiveOfALoadedLink takes 100 packets out of a link that is loaded all the
// time: they follow one another without a gap.
func TestLiveOfALoadedLink(t *testing.T) {
	e := newEstablished(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := e.sw.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		var seq uint32
		got := make([]*packet.Frame, 64)
		for ctx.Err() == nil {
			if e.pool.Free() >= 64 {
				e.inject(&seq)
			}
			packet.Release(got[:e.web.Collect(got)])
		}
	})
	l := e.watch(dataplane.LiveRequest{Match: wantAll, Count: 100})
	next := uint32(0)
	for i := range 100 {
		tr, err := l.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seq := packet.TCP(tr.Live.Frame[34:]).Seq()
		if i > 0 && seq != next {
			t.Fatalf("walk %d is of segment %d, not %d", i, seq, next)
		}
		next = seq + 1
		if len(tr.Verdict.Outputs) != 1 {
			t.Errorf("walk %d: %+v", i, tr.Verdict)
		}
	}
	if _, err := l.Next(ctx); err != io.EOF {
		t.Errorf("after the last walk: %v", err)
	}
	if c := l.Counts(); c.Missed != 0 || c.Told != 100 {
		t.Errorf("%+v", c)
	}
}

// inject sends a batch of segments of one byte each.
func (e *established) inject(seq *uint32) {
	e.pool.Get(e.batches[:])
	for _, f := range e.batches {
		f.SetBytes(e.there)
		h := packet.TCP(f.Bytes()[34:])
		h.SetSeq(1001 + *seq)
		*seq++
		l := packet.ParseLayers(f.Bytes())
		l.SetL4Checksum(f.Bytes())
	}
	e.client.Inject(e.batches[:]...)
}

// TestLiveLosesNoPacket fills the ring of a trace that nobody takes from: the
// packets leave, and are counted as not watched.
func TestLiveLosesNoPacket(t *testing.T) {
	r := newRig(t, "table=0,priority=1,in_port=1 actions=output:2")
	l := r.watch(dataplane.LiveRequest{Match: wantAll})
	for range 300 {
		r.wantPorts(r.send(anyTCP), 2)
	}
	c := l.Counts()
	if c.Matched != 300 || c.Told+c.Missed != 300 || c.Missed == 0 {
		t.Errorf("%+v", c)
	}
	if got := taken(t, l); len(got) != int(c.Told) {
		t.Errorf("%d walks, counted %+v", len(got), c)
	}
	r.wantPorts(r.send(anyTCP), 2)
	if again := l.Counts(); again.Told != c.Told+1 {
		t.Errorf("the ring stays full: %+v", again)
	}
}

// onlyDropped keeps what is lost.
func onlyDropped(t *telemetry.Trace) bool { return t.Verdict.Reason != telemetry.NotDropped }

// TestLiveDropped wants only what is lost.
func TestLiveDropped(t *testing.T) {
	r := newRig(t, "table=0,priority=1,tcp,tp_dst=80 actions=output:2\ntable=0,priority=1,udp actions=goto_table:3")
	l := r.watch(dataplane.LiveRequest{Match: wantAll, Keep: onlyDropped})
	for range 3 {
		r.send(anyTCP)
		r.send("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=5,tp_dst=6")
	}
	r.sendFrame(1, make([]byte, 13))
	var got []string
	for _, tr := range taken(t, l) {
		got = append(got, fmt.Sprintf("%s in %d", tr.Verdict.Reason, tr.Verdict.Table))
	}
	want := []string{"table_miss in 3", "table_miss in 3", "table_miss in 3", "runt in 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLiveTables keeps the packet as it enters the tables that a trace asks for,
// there where no entry is too; of two traces each one's.
func TestLiveTables(t *testing.T) {
	r := newRig(t, "table=0,ip actions=set_field:1.2.3.4->nw_dst,goto_table:1\ntable=1,ip actions=set_field:5.6.7.8->nw_dst,resubmit(,7),goto_table:3\ntable=3 actions=output:2")
	l := r.watch(dataplane.LiveRequest{Match: wantAll, Tables: []uint8{1, 7}})
	r.watch(dataplane.LiveRequest{Match: wantAll, Tables: []uint8{3}})
	r.wantPorts(r.send(anyTCP), 2)
	var got []string
	for _, st := range taken(t, l)[0].Steps {
		if st.Kind == telemetry.StepEntry && st.Frame != nil {
			got = append(got, fmt.Sprintf("%d %v", st.Table, packet.IPv4(st.Frame[packet.EthernetLen:]).Dst()))
		}
	}
	if want := []string{"1 1.2.3.4", "7 5.6.7.8", "3 5.6.7.8"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestLiveFragments watches fragments that wait, and go on under their ids.
func TestLiveFragments(t *testing.T) {
	r := newRig(t, "table=0 actions=goto_table:1\n"+tracked)
	l := r.watch(dataplane.LiveRequest{Match: wantAll})
	r.sendFrame(1, piece(1, 0, 800, true))
	r.wantPorts(r.sendFrame(1, piece(1, 800, 100, false)), 2, 2)
	var got []string
	for _, tr := range taken(t, l) {
		got = append(got, fmt.Sprintf("%d %v %s", tr.Live.ID, tr.Live.Resumed, tr.Verdict.Text(nil)))
	}
	want := []string{
		"1 false waits in table 1 for the rest of its datagram", "2 false waits in table 1 for the rest of its datagram",
		"1 true output to port 2", "2 true output to port 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestLiveAcrossSwitches lets a packet's id go with it to another switch, which
// watches it though its own filter wants nothing, and no packet of another
// session.
func TestLiveAcrossSwitches(t *testing.T) {
	near := newRig(t, "table=0,in_port=1 actions=set_field:192.0.2.2->tun_dst,output:9")
	far := newRig(t, "table=0,in_port=9 actions=output:2")
	const session = 7 << 32
	here := near.watch(dataplane.LiveRequest{Match: wantAll, FirstID: session | 5})
	there := far.watch(dataplane.LiveRequest{FirstID: session | 1<<24})
	other := far.watch(dataplane.LiveRequest{FirstID: 8 << 32})
	out := near.send(anyTCP)
	if len(out) != 1 || out[0].tunnel.Trace != session|5 {
		t.Fatalf("left as %+v", out)
	}
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(out[0].frame)
	f.Tunnel = out[0].tunnel
	far.wantPorts(far.sendWhole(tunnelPort, f), 2)
	a, b := taken(t, here), taken(t, there)
	if len(a) != 1 || len(b) != 1 || a[0].Live.ID != b[0].Live.ID || a[0].Live.Followed || !b[0].Live.Followed {
		t.Errorf("%d walks here, %d there", len(a), len(b))
	}
	if n := len(taken(t, other)); n != 0 {
		t.Errorf("a trace of another session has %d walks", n)
	}
	here.Close()
	near.watch(dataplane.LiveRequest{Match: wantAll})
	if out := near.send(anyTCP); out[0].tunnel.Trace != 0 {
		t.Error("an id leaves that nobody asked to")
	}
}

// TestLiveBegin begins as many walks as were asked for, and follows packets of the
// session beyond.
func TestLiveBegin(t *testing.T) {
	r := newRig(t, "table=0,in_port=1 actions=output:2\ntable=0,in_port=9 actions=output:2")
	const session = 7 << 32
	l := r.watch(dataplane.LiveRequest{Match: wantAll, Begin: 3, FirstID: session | 1})
	for i := range 5 {
		f := packet.NewFrame(make([]byte, 2048), nil)
		_, b := r.compose(anyTCP)
		f.SetBytes(b)
		f.Tunnel.Trace = session | 1<<24 + uint64(i)
		r.wantPorts(r.sendWhole(tunnelPort, f), 2)
		r.wantPorts(r.send(anyTCP), 2)
	}
	begun, followed := 0, 0
	for _, tr := range taken(t, l) {
		if tr.Live.Followed {
			followed++
		} else {
			begun++
		}
	}
	if begun != 3 || followed != 5 {
		t.Errorf("%d walks began here and %d elsewhere", begun, followed)
	}
}

// TestLiveLimit begins more traces than there may be.
func TestLiveLimit(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	for range 7 {
		r.watch(dataplane.LiveRequest{Match: wantAll})
	}
	last := r.watch(dataplane.LiveRequest{Match: wantAll})
	if _, err := r.sw.TraceLive(dataplane.LiveRequest{Match: wantAll}); err == nil {
		t.Error("a ninth live trace")
	}
	r.send(anyTCP)
	if n := len(taken(t, last)); n != 1 {
		t.Errorf("the eighth has %d walks", n)
	}
	last.Close()
	r.watch(dataplane.LiveRequest{Match: wantAll})
}
