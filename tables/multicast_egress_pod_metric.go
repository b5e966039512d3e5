package tables

import "github.com/antrail/antrail/flow"

// MulticastEgressPodMetric counts the packets that each Pod of this Node sends to multicast
// groups, by its address. It exists with Multicast.
//
// Reads:  the source address.
// Writes: nothing.
// Next:   MulticastRouting, which is also the table-miss.

// multicastFromPod counts the packets of one Pod.
func (p *Pipeline) multicastFromPod(pod Pod) (all []*flow.Entry) {
	for _, a := range pod.IPs {
		if familyOf(a) == IPv4 {
			all = append(all, p.entry(forMulticast, tableMulticastEgressPodMetric, priorityNormal,
				match(src(a)), p.goNext(tableMulticastEgressPodMetric)))
		}
	}
	return all
}

// igmpUncounted keeps messages of group management out of a table's counts.
func (p *Pipeline) igmpUncounted(t table) *flow.Entry {
	return p.entry(forMulticast, t, priorityHigh, match(igmp), p.goNext(t))
}
