package telemetry

import (
	"errors"
	"fmt"
)

// PacketCounters is what the switch did with packets.
type PacketCounters struct {
	Received uint64 `json:"received"` // frames that the port handed to the switch
	Made     uint64 `json:"made"`     // packet-outs: resets, ICMP errors, ARP answers …
	// Copied is how often a packet was sent again after the first time: floods, all groups,
	// mirrors, or a packet-in in addition to an output.
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

// Missing is how many packets are in no counter. If it is not 0, the switch has lost packets
// without counting them.
func (s *PacketCounters) Missing() int64 {
	came := int64(s.Received) + int64(s.Made) + s.Copied + s.Cut
	return came - int64(s.Queued) - int64(s.Agent) - int64(s.Dropped) - s.Held
}

// Add adds another one's counters.
func (s *PacketCounters) Add(o *PacketCounters) {
	s.Received, s.Made, s.Copied, s.Cut = s.Received+o.Received, s.Made+o.Made, s.Copied+o.Copied, s.Cut+o.Cut
	s.Queued, s.Agent, s.Dropped, s.Held = s.Queued+o.Queued, s.Agent+o.Agent, s.Dropped+o.Dropped, s.Held+o.Held
	s.Handed, s.Sent, s.Refused = s.Handed+o.Handed, s.Sent+o.Sent, s.Refused+o.Refused
}

// PortPacketCounters is the packet counters of a port.
type PortPacketCounters struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	PacketCounters
}

// SwitchPacketCounters is all packet counters of a switch, at one moment.
type SwitchPacketCounters struct {
	Ports []PortPacketCounters `json:"ports,omitzero"` // by number
	// Own is for packets that the switch makes, Gone for removed ports.
	Own   PacketCounters `json:"own"`
	Gone  PacketCounters `json:"gone"`
	Total PacketCounters `json:"total"`
	// Drops is the tables' count of drops, Waiting the number of waiting fragments. They must
	// equal Total's Dropped and Held.
	Drops   uint64 `json:"drops"`
	Waiting int    `json:"waiting"`
}

// Check returns an error that names each counter that does not agree.
func (s *SwitchPacketCounters) Check() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	of := func(who string, x *PacketCounters) {
		check(x.Missing() == 0, "%s: %d packets are missing: %+v", who, x.Missing(), *x)
		check(x.Handed == x.Sent+x.Refused, "%s: of %d packets handed to it %d were sent and %d refused", who, x.Handed, x.Sent, x.Refused)
	}
	for i := range s.Ports {
		of(fmt.Sprintf("port %d (%s)", s.Ports[i].No, s.Ports[i].Name), &s.Ports[i].PacketCounters)
	}
	of("the switch's own", &s.Own)
	of("ports that are gone", &s.Gone)
	t := &s.Total
	check(t.Queued == t.Handed, "%d packets were queued, and %d handed to ports", t.Queued, t.Handed)
	check(t.Dropped == s.Drops, "%d packets were dropped, and the tables count %d", t.Dropped, s.Drops)
	check(t.Held == int64(s.Waiting), "%d fragments are held, and %d wait", t.Held, s.Waiting)
	return errors.Join(errs...)
}
