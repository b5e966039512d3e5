package agent

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tables"
)

// Refusing out loud. Two kinds of packets come to the agent for an answer (a third
// is in toolong.go): those to a Service without endpoints, and those that a
// policy's rule rejects.
// TCP is answered with a reset, anything else with ICMP "destination
// unreachable" (answer.go). How an answer finds its way is in tables.Answer.

const (
	// rejectRate and rejectBurst bound the answers: a client that ignores them
	// must not keep the agent busy.
	rejectRate  = 500 // a second
	rejectBurst = 200
)

// rejecter answers. The switch calls it for one packet at a time.
type rejecter struct {
	sw     door.Switch
	bucket bucket

	service, policy, length rejections
}

// rejections counts what became of packets that were to be refused.
type rejections struct {
	answered atomic.Uint64
	silent   atomic.Uint64 // that must not be answered
	limited  atomic.Uint64
	failed   atomic.Uint64 // answers that the switch did not take
}

// noEndpoint refuses in a Service's name.
func (r *rejecter) noEndpoint(pi *dataplane.PacketIn) { r.refuse(pi, portUnreachable, &r.service) }

// byPolicy refuses in the destination's name.
func (r *rejecter) byPolicy(pi *dataplane.PacketIn) { r.refuse(pi, prohibited, &r.policy) }

func (r *rejecter) refuse(pi *dataplane.PacketIn, why codes, n *rejections) {
	b := rejection(pi.Frame, why)
	if b == nil {
		n.silent.Add(1)
		return
	}
	if !r.bucket.take(time.Now()) {
		n.limited.Add(1)
		return
	}
	from, actions := tables.Answer(&pi.Key, pi.InPort, r.sw.Names())
	if err := r.sw.PacketOut(from, actions, b); err != nil {
		n.failed.Add(1)
		return
	}
	n.answered.Add(1)
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
