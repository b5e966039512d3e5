package tables

import "github.com/antrail/antrail/flow"

// MulticastIngressPodMetric counts the packets that each Pod of this Node gets from multicast
// groups, by its port. A Pod that sends to its own group is counted too, although its copy is
// dropped. It exists with Multicast.
//
// Reads:  TargetOFPortField.
// Writes: nothing.
// Next:   MulticastOutput, which is also the table-miss.

// multicastToPod counts the packets to one Pod.
func (p *Pipeline) multicastToPod(pod Pod) *flow.Entry {
	return p.entry(forMulticast, tableMulticastIngressPodMetric, priorityNormal,
		match(IPv4.ip(), TargetOFPortField.Is(uint64(pod.Port.No))), p.goNext(tableMulticastIngressPodMetric))
}
