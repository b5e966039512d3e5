package tables

// MulticastIngressMetric counts queries of group management by the rule that decided on them,
// and drops those that the rule denies. It exists with Multicast and AntreaPolicy.
//
// Reads:  APConjIDField, APDenyRegMark.
// Writes: nothing.
// Next:   MulticastIngressPodMetric, which is also the table-miss; none for what is denied.
