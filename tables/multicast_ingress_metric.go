package tables

// MulticastIngressMetric counts queries of group management by the rule that decided on them, and
// drops denied ones. It exists with Multicast and AntreaPolicy.
//
// Reads:  APConjIDField, APDenyRegMark.
// Writes: nothing.
// Next:   MulticastIngressPodMetric, also by the table-miss. A denied packet has no next table.
