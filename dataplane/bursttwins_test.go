package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// burst gives both several frames before either looks, and compares what left, byte by
// byte and in order. Those of a port are one batch of its worker.
func (w *twins) burst(all []offer) {
	w.Helper()
	var got, ins [2]string
	for _, o := range all {
		w.steps++
		w.history = append(w.history, fmt.Sprintf("burst: port %d %+v %+v %x", o.port, o.tunnel, o.offload, o.frame))
	}
	for i, r := range w.rigs {
		r.packetIns = nil
		for _, o := range all {
			if p := r.ports[o.port]; p != nil {
				f := packet.NewFrame(make([]byte, packet.Headroom+len(o.frame)), nil)
				f.SetBytes(o.frame)
				f.Tunnel, f.Offload = o.tunnel, o.offload
				p.Inject(f)
			}
		}
		r.sw.Poll()
		for _, s := range r.collect() {
			got[i] += fmt.Sprintf("%+v\n", s)
			if answer, ok := answerTo(offer(s)); ok && i == 0 && w.rnd.IntN(4) == 0 {
				w.seen = append(w.seen, answer)
			}
		}
		for _, pi := range r.packetIns {
			ins[i] += pi.Entry.Text(flow.Format{})
			pi.Entry = nil
			ins[i] += fmt.Sprintf("%+v\n", *pi)
		}
	}
	if got[0] != got[1] {
		w.fail("what left differs", got[0], got[1])
	}
	if ins[0] != ins[1] {
		w.fail("packet-ins differ", ins[0], ins[1])
	}
}

// TestBurstsChangeNothing is TestCacheChangesNothing with many packets in a batch, most
// of them first ones between few ends: where they will be looked up is found out for
// all of them before the first of them changes it.
func TestBurstsChangeNothing(t *testing.T) {
	for name, s := range twinSources(t) {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var taken uint64
			little := func() bool { return taken < 1000 }
			for i := range rounds(8, little) {
				w := newTwins(t, seed+i, s, nil)
				w.fresh, w.calm = true, true
				n := w.rnd.IntN(len(s.hosts) - 1)
				w.hosts = s.hosts[n : n+2]
				for range 60 {
					var all []offer
					for range 1 + w.rnd.IntN(100) {
						o := w.firstPacket(s.to[w.rnd.IntN(len(s.to))])
						if len(w.seen) > 0 && w.rnd.IntN(3) == 0 {
							o = w.next()
						}
						all = append(all, o)
						if w.rnd.IntN(8) == 0 { // and again, in the same batch
							all = append(all, o)
						}
					}
					w.burst(all)
					w.compare()
					if w.rnd.IntN(8) == 0 {
						w.change()
					}
				}
				e := w.rigs[0].sw.Cache().Events
				taken += e[telemetry.CacheFirst] + e[telemetry.MegaflowHit] + e[telemetry.CacheHit]
				t.Logf("%+v", w.rigs[0].sw.Cache())
			}
			if little() {
				t.Errorf("%d packets took what was remembered: this proves little", taken)
			}
		})
	}
}
