package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// PipelineIPClassifier sends IPv4 packets to multicast groups into tables of
// their own. They need no connection tracking, Services or routes. It exists with
// Multicast.
//
// Reads:  the destination.
// Writes: nothing.
// Next:   the multicast tables for a group. Table-miss: conntrack.

// ipv4Multicast is the range of groups (RFC 5771).
var ipv4Multicast = netip.MustParsePrefix("224.0.0.0/4")

func (p *Pipeline) classifyMulticast() []*flow.Entry {
	if !hasMulticast(p) {
		return nil
	}
	return one(p.entry(forMulticast, tablePipelineIPClassifier, priorityHigh, match(dstIn(ipv4Multicast)),
		resubmit(p.first(stageMulticastEgress))))
}
