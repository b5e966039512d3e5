package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Sums: no packet is ever lost without a word. What came and what was made of it
// is counted at different places, by who receives, walks, queues and transmits,
// and must agree to the packet:
//
//	received + made + copied + cut = queued + agent + dropped + held
//	queued, of all ports together  = handed, of all ports together
//	handed                         = sent + refused
//
// The first line holds for each port, of packets that entered by it, and for the
// packets that the switch makes itself (packet-outs). What the kernel forwards by
// shortcuts is in no term: it is received and sent without the switch.
//
// A worker counts in its own memory and settles once per batch, under its busy
// lock; who holds the locks of all sees sums that agree, at any load.

// Sums is what became of packets.
type Sums struct {
	Received uint64 `json:"received"` // frames that the port handed to the switch
	Made     uint64 `json:"made"`     // packet-outs: resets, ICMP errors, ARP answers …
	// Copied is how often a packet was sent again after the first time: floods,
	// groups of all, mirrors, to the agent besides an output.
	Copied int64 `json:"copied"`
	Cut    int64 `json:"cut"` // segments beyond the first that packets were cut into

	Queued  uint64 `json:"queued"`  // for ports
	Agent   uint64 `json:"agent"`   // packet-ins, including those that the switch answers
	Dropped uint64 `json:"dropped"` // by table and reason in Tables
	Held    int64  `json:"held"`    // fragments that wait for the rest of their datagram

	// Of packets that leave by the port:
	Handed  uint64 `json:"handed"`
	Sent    uint64 `json:"sent"`
	Refused uint64 `json:"refused"` // the port's own counters say why
}

// Missing is how many of the packets that came are accounted for by nothing: 0,
// or the switch has lost some without a word.
func (s *Sums) Missing() int64 {
	came := int64(s.Received) + int64(s.Made) + s.Copied + s.Cut
	return came - int64(s.Queued) - int64(s.Agent) - int64(s.Dropped) - s.Held
}

func (s *Sums) add(o *Sums) {
	s.Received, s.Made, s.Copied, s.Cut = s.Received+o.Received, s.Made+o.Made, s.Copied+o.Copied, s.Cut+o.Cut
	s.Queued, s.Agent, s.Dropped, s.Held = s.Queued+o.Queued, s.Agent+o.Agent, s.Dropped+o.Dropped, s.Held+o.Held
	s.Handed, s.Sent, s.Refused = s.Handed+o.Handed, s.Sent+o.Sent, s.Refused+o.Refused
}

// account is the sums of a port, or of packets that the switch makes.
type account struct {
	received, made, queued, agent, dropped, handed, sent, refused atomic.Uint64
	copied, cut, held                                             atomic.Int64
}

func (a *account) sums() Sums {
	return Sums{
		Received: a.received.Load(), Made: a.made.Load(), Copied: a.copied.Load(), Cut: a.cut.Load(),
		Queued: a.queued.Load(), Agent: a.agent.Load(), Dropped: a.dropped.Load(), Held: a.held.Load(),
		Handed: a.handed.Load(), Sent: a.sent.Load(), Refused: a.refused.Load(),
	}
}

// handedOver counts n packets that were given to a port, which took some.
func (a *account) handedOver(n, taken int) {
	a.handed.Add(uint64(n))
	a.sent.Add(uint64(taken))
	if n != taken {
		a.refused.Add(uint64(n - taken))
	}
}

// batchSums is what a worker has counted since it settled, of packets of one
// account.
type batchSums struct {
	queued, agent, dropped uint64
	copied, cut, held      int64
}

// walked counts what a walk, or the part of it since it was resumed, has made of
// its packet: as many as left it beyond the first are copies.
func (k *walk) walked() {
	became := 1
	if k.sent > 0 || k.waits > 0 {
		became = k.sent - k.before + k.waits + k.lost
	}
	k.w.sums.copied += int64(became - 1)
	k.w.sums.held += int64(k.waits)
}

// loseHeld counts a fragment that waited in vain: as dropped, unless it was sent
// somewhere before.
func (a *account) loseHeld(sent bool) {
	a.held.Add(-1)
	if sent {
		a.copied.Add(-1)
	} else {
		a.dropped.Add(1)
	}
}

// settleSums adds what was counted to the account that the packets belong to.
func (w *worker) settleSums() {
	a, b := w.account, &w.sums
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
	*b = batchSums{}
}

// resume begins to count for a fragment that waited, of any account. It returns
// what is to be given to resumed afterwards.
func (w *worker) resume(a *account) (batch ofBatch) {
	batch = ofBatch{w.account, w.sums}
	w.account, w.sums = a, batchSums{held: -1}
	return batch
}

// resumed ends what resume began.
func (w *worker) resumed(batch ofBatch) {
	w.settleSums()
	w.account, w.sums = batch.account, batch.sums
}

// ofBatch is the account of a batch, with what was counted.
type ofBatch struct {
	account *account
	sums    batchSums
}

// PortSums is the sums of a port.
type PortSums struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	Sums
}

// SwitchSums is all sums of a switch, at one moment.
type SwitchSums struct {
	Ports []PortSums `json:"ports,omitzero"` // by number
	// Own is what the switch makes itself, Gone the sums of ports that are gone.
	Own   Sums `json:"own"`
	Gone  Sums `json:"gone"`
	Total Sums `json:"total"`
	// Drops is what the tables count, Waiting the fragments that wait: they must be
	// Total's Dropped and Held.
	Drops   uint64 `json:"drops"`
	Waiting int    `json:"waiting"`
}

// Sums tells what became of all packets. Workers stand still while it looks: where
// they have all processors, that may take milliseconds until the last one stands.
func (s *Switch) Sums() *SwitchSums {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, w := range append([]*worker{s.outside}, s.workers...) {
		w.busy.Lock()
		defer w.busy.Unlock()
	}
	return s.addUp()
}

// RunningSums is Sums without stopping anybody, for who asks again and again. Terms
// that belong together differ by the packets of batches that are under way.
func (s *Switch) RunningSums() *SwitchSums {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUp()
}

// addUp adds up what there is. The caller holds mu.
func (s *Switch) addUp() *SwitchSums {
	all := &SwitchSums{Own: s.own.sums(), Gone: s.gone, Waiting: s.fragments.Stats().Fragments}
	for _, a := range s.past {
		sums := a.sums()
		all.Gone.add(&sums)
	}
	all.Total = all.Own
	all.Total.add(&all.Gone)
	for _, p := range s.ports.Load().list {
		all.Ports = append(all.Ports, PortSums{p.no, p.port.Name(), p.account.sums()})
		all.Total.add(&all.Ports[len(all.Ports)-1].Sums)
	}
	for _, w := range append([]*worker{s.outside}, s.workers...) {
		for table := range w.drops {
			for r := range w.drops[table] {
				all.Drops += w.drops[table][r].Load()
			}
		}
	}
	return all
}

// Check says where sums do not agree.
func (s *SwitchSums) Check() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	of := func(who string, x *Sums) {
		check(x.Missing() == 0, "%s: %d packets are missing: %+v", who, x.Missing(), *x)
		check(x.Handed == x.Sent+x.Refused, "%s: of %d packets handed to it %d were sent and %d refused", who, x.Handed, x.Sent, x.Refused)
	}
	for i := range s.Ports {
		of(fmt.Sprintf("port %d (%s)", s.Ports[i].No, s.Ports[i].Name), &s.Ports[i].Sums)
	}
	of("the switch's own", &s.Own)
	of("ports that are gone", &s.Gone)
	t := &s.Total
	check(t.Queued == t.Handed, "%d packets were queued, and %d handed to ports", t.Queued, t.Handed)
	check(t.Dropped == s.Drops, "%d packets were dropped, and the tables count %d", t.Dropped, s.Drops)
	check(t.Held == int64(s.Waiting), "%d fragments are held, and %d wait", t.Held, s.Waiting)
	return errors.Join(errs...)
}

// foldSums adds up the accounts of ports that are gone and hold nothing any more.
// The caller holds mu.
func (s *Switch) foldSums() {
	s.past = slices.DeleteFunc(s.past, func(a *account) bool {
		if a.held.Load() != 0 {
			return false
		}
		sums := a.sums()
		s.gone.add(&sums)
		return true
	})
}
