package tables

import "github.com/antrail/antrail/flow"

// MulticastIngressPodMetric counts what each Pod of this Node gets from multicast groups,
// by its port. A Pod that sends to a group of its own is counted too, although its copy
// does not leave. It exists with Multicast.
//
// Reads:  TargetOFPortField.
// Writes: nothing.
// Next:   MulticastOutput, which is also the table-miss.

// multicastToPod counts what a Pod gets.
func (p *Pipeline) multicastToPod(pod Pod) *flow.Entry {
	return p.entry(forMulticast, tableMulticastIngressPodMetric, priorityNormal,
		match(IPv4.ip(), TargetOFPortField.Is(uint64(pod.Port.No))), p.goNext(tableMulticastIngressPodMetric))
}
