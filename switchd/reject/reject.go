// Package reject answers packets in place of a controller. A policy rejects them, their Service has
// no endpoints, or they are too long for the tunnel. It answers TCP with a reset, any other protocol
// with an ICMP error.
//
// Package tables decides which packet-ins of its pipeline ask for an answer, and the answer's
// way. This package knows nothing more of a pipeline.
//
//	reject.go  which packets are answered, and how many
//	answer.go  resets and ICMP errors, as frames
package reject

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// The limits of answers to packet-ins. A client that ignores answers must not keep the switch
// busy.
const (
	rate  = 500 // a second
	burst = 200
)

// Pause is how long a caller of TooLong waits after each packet. So it answers no more packets a
// second than there are answers to packet-ins.
const Pause = time.Second / rate

// Switch is the switch whose packets are answered.
type Switch interface {
	Names() *flow.Names
	PacketOut(inPort uint32, actions []flow.Action, frame []byte) error
}

// Alone reports whether an entry of a named table only asks for an answer, by its userdata. Then
// no controller needs the packet.
func Alone(userdata []byte, table string) bool { return tables.AnswerOnly(userdata, table) }

// Answerer answers packets. One goroutine may call PacketIn, another one TooLong, and any
// goroutine the others.
type Answerer struct {
	sw     Switch
	bucket bucket // of PacketIn

	service, policy, length counts
}

// counts has the counters of door.Answers.
type counts struct{ answered, silent, limited, failed atomic.Uint64 }

func (c *counts) sum() door.Answers {
	return door.Answers{Answered: c.answered.Load(), Silent: c.silent.Load(), Limited: c.limited.Load(), Failed: c.failed.Load()}
}

// NewAnswerer makes an Answerer that sends its answers by the switch.
func NewAnswerer(sw Switch) *Answerer {
	return &Answerer{sw: sw, bucket: bucket{rate: rate, burst: burst}}
}

// Counters counts the packets so far by outcome.
func (a *Answerer) Counters() door.AnswerCounters {
	return door.AnswerCounters{Service: a.service.sum(), Policy: a.policy.sum(), Length: a.length.sum()}
}

// PacketIn answers a packet-in if it asks for an answer.
func (a *Answerer) PacketIn(pi *telemetry.PacketIn) {
	names := a.sw.Names()
	if tables.NoEndpoint(pi.UserData, &pi.Key, names.Table(pi.Table)) {
		a.refuse(pi, names, portUnreachable, &a.service)
	} else if v, ok := tables.ReadVerdict(pi.UserData, &pi.Key, names); ok && v.Reject {
		a.refuse(pi, names, prohibited, &a.policy)
	}
}

// refuse answers a packet, unless the rate is exceeded.
func (a *Answerer) refuse(pi *telemetry.PacketIn, names *flow.Names, why codes, n *counts) {
	r, ok := rejectable(pi.Frame)
	switch {
	case !ok:
		n.silent.Add(1)
		return
	case !a.bucket.takeToken(time.Now()):
		n.limited.Add(1)
		return
	}
	from, actions := tables.Answer(&pi.Key, pi.InPort, names)
	if r.TCI != 0 && from != pi.InPort { // an answer that walks as a reply gets no tag
		n.silent.Add(1)
		return
	}
	if a.sw.PacketOut(from, actions, r.rejection(why)) != nil {
		n.failed.Add(1)
		return
	}
	n.answered.Add(1)
}

// TooLong sends an ICMP error to the sender of a frame that was too long for the tunnel, as a
// router does. mtu is the inner MTU of the path.
func (a *Answerer) TooLong(frame []byte, mtu int) {
	b := tooBig(frame, mtu)
	if b == nil {
		a.length.silent.Add(1)
		return
	}
	from, actions, ok := tables.Report(a.sw.Names())
	if !ok || a.sw.PacketOut(from, actions, b) != nil {
		a.length.failed.Add(1)
		return
	}
	a.length.answered.Add(1)
}

// bucket is a token bucket. Only one goroutine may use it.
type bucket struct {
	rate, burst float64
	tokens      float64
	last        time.Time
}

// takeToken reports whether one more may pass now, and takes a token for it.
func (b *bucket) takeToken(now time.Time) bool {
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
