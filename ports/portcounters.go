package ports

import (
	"net/netip"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
)

// Counters is a driver's part of Stats. Drops and errors are counted only by reason. Stats sums
// them when it is called, so the sums always agree with the reasons. Any goroutine may call its
// methods; drivers call them once per batch.
type Counters struct {
	rxPackets, rxBytes atomic.Uint64
	txPackets, txBytes atomic.Uint64
	joined, split      atomic.Uint64
	dropped            [reasons]atomic.Uint64
	DropSamples        // of frames that were not sent
}

// Received counts a batch handed out by Receive.
func (c *Counters) Received(packets, bytes int) {
	c.rxPackets.Add(uint64(packets))
	c.rxBytes.Add(uint64(bytes))
}

// Sent counts a batch accepted by Transmit.
func (c *Counters) Sent(packets, bytes int) {
	c.txPackets.Add(uint64(packets))
	c.txBytes.Add(uint64(bytes))
}

// Joined counts received packets that were handed out in one frame with others,
// beyond the first.
func (c *Counters) Joined(n int) { c.joined.Add(uint64(n)) }

// CountSplit counts sent packets that were cut from one frame, beyond the first.
func (c *Counters) CountSplit(n int) { c.split.Add(uint64(n)) }

// CountDrop counts n frames dropped for a reason; None is ignored.
func (c *Counters) CountDrop(r Reason, n int) {
	if r != None && n > 0 {
		c.dropped[r].Add(uint64(n))
	}
}

// DropFrames counts frames that are not sent for a reason, and keeps the last one as a sample;
// None is ignored.
func (c *Counters) DropFrames(r Reason, frames ...*packet.Frame) {
	if r == None || len(frames) == 0 {
		return
	}
	c.CountDrop(r, len(frames))
	f := frames[len(frames)-1]
	c.Keep(r.String(), netip.Addr{}, f.Bytes(), f.Len())
}

// TransmitEach is Transmit for a driver that sends frame by frame. It counts each result of send,
// releases all frames, and returns how many were sent.
func (c *Counters) TransmitEach(batch []*packet.Frame, send func(*packet.Frame) Reason) int {
	n, bytes := 0, 0
	for _, f := range batch {
		if why := send(f); why != None {
			c.DropFrames(why, f)
			continue
		}
		n++
		bytes += f.Len()
	}
	c.Sent(n, bytes)
	packet.Release(batch)
	return n
}

// Stats is a copy of the counters. Reasons has the reasons that occurred.
func (c *Counters) Stats() Stats {
	s := Stats{
		RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(),
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(),
		RxJoined: c.joined.Load(), TxSplit: c.split.Load(),
		Reasons: make(map[string]uint64),
	}
	for r := range c.dropped {
		s.AddDrops(Reason(r), c.dropped[r].Load())
	}
	return s
}

// AddDrops adds n frames dropped for a reason to the reason and to its sum.
func (s *Stats) AddDrops(r Reason, n uint64) {
	if n == 0 || r == None || r >= reasons {
		return
	}
	s.Reasons[r.String()] += n
	switch reasonTexts[r].kind {
	case rxDropped:
		s.RxDropped += n
	case rxErrors:
		s.RxErrors += n
	case txDropped:
		s.TxDropped += n
	case txErrors:
		s.TxErrors += n
	}
}
