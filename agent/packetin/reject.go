package packetin

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tables"
)

// Refusing out loud. Three kinds of packets are answered: those to a Service without
// endpoints, those that a policy's rule rejects, and those that are too long for the
// tunnel. TCP is answered with a reset, anything else with an ICMP error (answer.go). How
// an answer finds its way is in tables.Answer.

const (
	// rejectRate and rejectBurst bound the answers: a client that ignores them
	// must not keep the agent busy.
	rejectRate  = 500 // a second
	rejectBurst = 200
)

// Rejecter answers packets that are refused. Its methods are for one goroutine, but for
// the counters.
type Rejecter struct {
	sw     door.Switch
	bucket bucket

	// Service, Policy and Length count what became of packets to a Service without
	// endpoints, of those that a rule rejects, and of those that are too long.
	Service, Policy, Length Rejections
}

// Rejections counts what became of packets that were to be refused.
type Rejections struct {
	Answered atomic.Uint64
	Silent   atomic.Uint64 // that must not be answered
	Limited  atomic.Uint64
	Failed   atomic.Uint64 // answers that the switch did not take
}

func (r *Rejecter) refuse(pi *dataplane.PacketIn, why codes, n *Rejections) {
	b := rejection(pi.Frame, why)
	if b == nil {
		n.Silent.Add(1)
		return
	}
	if !r.bucket.take(time.Now()) {
		n.Limited.Add(1)
		return
	}
	from, actions := tables.Answer(&pi.Key, pi.InPort, r.sw.Names())
	if err := r.sw.PacketOut(from, actions, b); err != nil {
		n.Failed.Add(1)
		return
	}
	n.Answered.Add(1)
}

// TooLong tells the sender of a frame that it was too long for the tunnel, as a router
// does. mtu is the inner MTU of the way.
func (r *Rejecter) TooLong(frame []byte, mtu int) {
	b := tooBig(frame, mtu)
	if b == nil {
		r.Length.Silent.Add(1)
		return
	}
	from, actions, ok := tables.Report(r.sw.Names())
	if !ok || r.sw.PacketOut(from, actions, b) != nil {
		r.Length.Failed.Add(1)
		return
	}
	r.Length.Answered.Add(1)
}

// bucket is a token bucket. It is for one goroutine.
type bucket struct {
	rate, burst float64
	tokens      float64
	last        time.Time
}

// take says whether one more may pass now.
func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
