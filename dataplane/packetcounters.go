package dataplane

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Packet counters. Every packet is counted where it is received, walked, queued and transmitted.
// The counters must agree to the packet:
//
//	received + made + copied + cut = queued + agent + dropped + held
//	queued, of all ports together  = handed, of all ports together
//	handed                         = sent + refused
//
//  1. The first line holds for each port, for the packets that entered by it. It also holds for
//     packets that the switch makes itself (packet-outs).
//  2. Packets that the kernel forwards by offload entries are in no term, because they never
//     enter the switch.
//  3. A worker counts in its own memory and settles once per batch, under its busy lock. So a
//     reader that holds the locks of all workers sees counters that agree, at any load.

// account is the packet counters of a port, or of packets that the switch makes.
type account struct {
	received, made, queued, agent, dropped, handed, sent, refused atomic.Uint64
	copied, cut, held                                             atomic.Int64
}

func (a *account) counters() telemetry.PacketCounters {
	return telemetry.PacketCounters{
		Received: a.received.Load(), Made: a.made.Load(), Copied: a.copied.Load(), Cut: a.cut.Load(),
		Queued: a.queued.Load(), Agent: a.agent.Load(), Dropped: a.dropped.Load(), Held: a.held.Load(),
		Handed: a.handed.Load(), Sent: a.sent.Load(), Refused: a.refused.Load(),
	}
}

// handedOver counts n packets that were given to a port, which accepted taken of them.
func (a *account) handedOver(n, taken int) {
	a.handed.Add(uint64(n))
	a.sent.Add(uint64(taken))
	if n != taken {
		a.refused.Add(uint64(n - taken))
	}
}

// batchCounters is a worker's counts since it last settled, for packets of one account.
type batchCounters struct {
	queued, agent, dropped uint64
	copied, cut, held      int64
}

// walked counts the results of a walk, or of its part since it was resumed. All results beyond
// the first are copies.
func (k *walk) walked() {
	became := 1
	if k.sent > 0 || k.waits > 0 {
		became = k.sent - k.before + k.waits + k.copiesDropped
	}
	k.w.packetCounters.copied += int64(became - 1)
	k.w.packetCounters.held += int64(k.waits)
}

// dropHeld counts a fragment whose datagram did not complete. It counts as dropped, unless it was
// sent somewhere before.
func (a *account) dropHeld(sent bool) {
	a.held.Add(-1)
	if sent {
		a.copied.Add(-1)
	} else {
		a.dropped.Add(1)
	}
}

// settlePacketCounters adds the worker's counts to the account of their packets.
func (w *worker) settlePacketCounters() {
	a, b := w.account, &w.packetCounters
	for _, c := range [...]struct {
		to *atomic.Uint64
		n  uint64
	}{{&a.queued, b.queued}, {&a.agent, b.agent}, {&a.dropped, b.dropped}} {
		if c.n != 0 {
			c.to.Add(c.n)
		}
	}
	if b.copied|b.cut|b.held != 0 {
		a.copied.Add(b.copied)
		a.cut.Add(b.cut)
		a.held.Add(b.held)
	}
	*b = batchCounters{}
}

// resume starts counting for a fragment that waited, of any account. The caller passes the result
// to resumed afterwards.
func (w *worker) resume(a *account) (batch ofBatch) {
	batch = ofBatch{w.account, w.packetCounters}
	w.account, w.packetCounters = a, batchCounters{held: -1}
	return batch
}

// resumed settles the fragment's counts and restores those of the batch.
func (w *worker) resumed(batch ofBatch) {
	w.settlePacketCounters()
	w.account, w.packetCounters = batch.account, batch.counters
}

// ofBatch is the account of a batch and its counts so far.
type ofBatch struct {
	account  *account
	counters batchCounters
}

// PacketCounters returns counters that agree. All workers wait while it reads. If they use all
// processors, that may take milliseconds until the last one waits.
func (s *Switch) PacketCounters() *telemetry.SwitchPacketCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, w := range s.everyWorker() {
		w.busy.Lock()
		defer w.busy.Unlock()
	}
	return s.addUp()
}

// RunningPacketCounters is PacketCounters without stopping the workers, for frequent readers. The
// terms differ by the packets of unfinished batches.
func (s *Switch) RunningPacketCounters() *telemetry.SwitchPacketCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUp()
}

// addUp adds up the counters of all accounts. The caller holds mu.
func (s *Switch) addUp() *telemetry.SwitchPacketCounters {
	all := &telemetry.SwitchPacketCounters{Own: s.own.counters(), Gone: s.gone, Waiting: s.fragments.Stats().Fragments}
	for _, a := range s.past {
		counters := a.counters()
		all.Gone.Add(&counters)
	}
	all.Total = all.Own
	all.Total.Add(&all.Gone)
	for _, p := range s.ports.Load().list {
		all.Ports = append(all.Ports, telemetry.PortPacketCounters{No: p.no, Name: p.port.Name(), PacketCounters: p.account.counters()})
		all.Total.Add(&all.Ports[len(all.Ports)-1].PacketCounters)
	}
	for _, w := range s.everyWorker() {
		for table := range w.drops {
			for r := range w.drops[table] {
				all.Drops += w.drops[table][r].Load()
			}
		}
	}
	return all
}

// foldPacketCounters adds up the accounts of removed ports that hold no packet any more. The
// caller holds mu.
func (s *Switch) foldPacketCounters() {
	s.past = slices.DeleteFunc(s.past, func(a *account) bool {
		if a.held.Load() != 0 {
			return false
		}
		counters := a.counters()
		s.gone.Add(&counters)
		return true
	})
}

// DroppedPackets returns the packets dropped since its last call, by time. missed counts those
// that found no room in a ring since the switch began. Any goroutine may call it.
func (s *Switch) DroppedPackets() (all []telemetry.DroppedPacket, missed uint64) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, r := range s.dropRings() {
		all = r.Read(all)
		missed += r.Missed.Load()
	}
	slices.SortStableFunc(all, func(a, b telemetry.DroppedPacket) int { return cmp.Compare(a.At, b.At) })
	return all, missed
}

func (s *Switch) dropRings() []*telemetry.DropRing {
	all := []*telemetry.DropRing{s.fragmentDrops}
	for _, w := range s.everyWorker() {
		all = append(all, w.dropRing)
	}
	return all
}

// countDrop counts a dropped packet and notes it.
func (w *worker) countDrop(f *packet.Frame, l *telemetry.Drop) {
	w.drops[l.Table][l.Reason].Add(1)
	w.packetCounters.dropped++
	w.dropRing.NotePacket(l, f, w.walk.inPort, w.now)
}

// countLateDrop counts a drop of a packet that already had an output.
func (w *worker) countLateDrop(f *packet.Frame, r telemetry.DropReason) {
	k := &w.walk
	w.countDrop(f, &telemetry.Drop{Reason: r, Table: k.last, Entry: k.met, CT: telemetry.CTOf(&k.ct)})
}

// noteReplayed notes a packet that a replayed path drops. The path counts it.
func (k *walk) noteReplayed(e *flowcache.Entry, l *telemetry.Drop, f *packet.Frame) {
	p := k.w.dropRing.ReserveSlot(k.inPort)
	if p == nil {
		return
	}
	if e.Parts != 0 {
		e.Apply(f, &k.layers)
	}
	p.Fill(l, f, k.inPort, k.w.now)
}
