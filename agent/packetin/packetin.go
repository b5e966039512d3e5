// Package packetin handles the packets that flow entries send to the controller. It writes the
// audit log of policies, and reports rejected packets, which the switch has already answered
// (switchd/reject).
//
//	packetin.go            the handler of each kind of packet
//	audit.go, auditfile.go the audit log of policies, and its file
package packetin

import (
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Refusal is why an entry sent a refused packet to the controller.
type Refusal int

// The refusals.
const (
	NoEndpoint Refusal = iota // its Service has no endpoint
	Rejected                  // a rule rejects it
	Logged                    // a rule drops it, and logs what it drops
)

// Receiver takes packet-ins. Receive is called for one packet at a time.
type Receiver struct {
	names func() *flow.Names
	// Audit is the audit log; nil for none. Set it before the first packet.
	Audit *Audit
	// Refused, if not nil, is called for each refused packet, with the policy's verdict if
	// there is one.
	Refused func(*telemetry.PacketIn, Refusal, *tables.Verdict)
	// IGMP, if not nil, is called for each IGMP message. Set it before the first packet.
	IGMP func(*telemetry.PacketIn)
}

// NewReceiver makes a receiver for a switch with these names of tables.
func NewReceiver(names func() *flow.Names) *Receiver { return &Receiver{names: names} }

// Receive reports a refused packet, and logs a packet of a rule with logging.
func (r *Receiver) Receive(pi *telemetry.PacketIn) {
	if len(pi.UserData) > 0 && pi.UserData[0] == tables.PacketInIGMP {
		if r.IGMP != nil {
			r.IGMP(pi)
		}
		return
	}
	names := r.names()
	if tables.NoEndpoint(pi.UserData, &pi.Key, names.Table(pi.Table)) {
		r.reportRefusal(pi, NoEndpoint, nil)
		return
	}
	v, ok := tables.ReadVerdict(pi.UserData, &pi.Key, names)
	if !ok {
		return
	}
	switch {
	case v.Reject:
		r.reportRefusal(pi, Rejected, &v)
	case v.Action == tables.Drop:
		r.reportRefusal(pi, Logged, &v)
	}
	if v.Log && r.Audit != nil {
		r.Audit.notePacketIn(pi, v)
	}
}

func (r *Receiver) reportRefusal(pi *telemetry.PacketIn, why Refusal, by *tables.Verdict) {
	if r.Refused != nil {
		r.Refused(pi, why, by)
	}
}
