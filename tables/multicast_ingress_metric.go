package tables

// MulticastIngressMetric would count what rules of MulticastIngressRule decide. It exists
// with Multicast and AntreaPolicy.
//
// Reads:  nothing.
// Writes: nothing.
// Next:   MulticastIngressPodMetric, by the table-miss.
