package tables

// MulticastIngressRule holds the ingress rules of Antrea-native policies about queries of group
// management. If a Pod gets no query, it does not report again, and its memberships end. It
// exists with Multicast and AntreaPolicy.
//
// Reads:  TargetOFPortField, the destination, the protocol.
// Writes: APConjIDField, APDenyRegMark.
// Next:   MulticastIngressMetric, which is also the table-miss.
