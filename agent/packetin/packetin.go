// Package packetin takes the packets that flow entries send to the controller. What a
// policy rejects, or what goes to a Service without endpoints, is answered; what a rule
// logs is written down.
//
//	packetin.go            who gets which packet
//	reject.go              answers: which, how many, and by which way
//	answer.go              resets and ICMP errors, as frames
//	audit.go, auditfile.go the log of policies, and its file
package packetin

import (
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tables"
)

// Refusal is why a packet came to the controller in place of being dropped.
type Refusal int

// The refusals.
const (
	NoEndpoint Refusal = iota // its Service has no endpoint
	Rejected                  // a rule rejects it
	Logged                    // a rule drops it, and logs what it drops
)

// Receiver takes packet-ins. Receive is called for one packet at a time.
type Receiver struct {
	Rejecter
	// Audit is the log of policies; nil for none. It is set before the first packet.
	Audit *Audit
	// Refused, if not nil, is called for each packet that is refused, with the verdict of a
	// policy if there is one.
	Refused func(*dataplane.PacketIn, Refusal, *tables.Verdict)
}

// NewReceiver makes a receiver that answers by a switch.
func NewReceiver(sw door.Switch) *Receiver {
	return &Receiver{Rejecter: Rejecter{sw: sw, bucket: bucket{rate: rejectRate, burst: rejectBurst}}}
}

// Receive answers a packet, writes it down, or both.
func (r *Receiver) Receive(pi *dataplane.PacketIn) {
	if tables.NoEndpoint(pi.UserData, &pi.Key) {
		r.tell(pi, NoEndpoint, nil)
		r.refuse(pi, portUnreachable, &r.Service)
		return
	}
	v, ok := tables.ReadVerdict(pi.UserData, &pi.Key, r.sw.Names())
	if !ok {
		return
	}
	switch {
	case v.Reject:
		r.tell(pi, Rejected, &v)
		r.refuse(pi, prohibited, &r.Policy)
	case v.Action == tables.Drop:
		r.tell(pi, Logged, &v)
	}
	if v.Log && r.Audit != nil {
		r.Audit.note(pi, v)
	}
}

func (r *Receiver) tell(pi *dataplane.PacketIn, why Refusal, by *tables.Verdict) {
	if r.Refused != nil {
		r.Refused(pi, why, by)
	}
}

// RejectPause is how long a caller of TooLong waits after each packet: so it answers no
// more of them in a second than policies' packets are answered.
const RejectPause = time.Second / rejectRate
