package tables

// MulticastIngressRule would ask the ingress rules of policies about queries of group
// management. Such rules are refused, so every packet goes on. It exists with Multicast
// and AntreaPolicy.
//
// Reads:  nothing.
// Writes: nothing.
// Next:   MulticastIngressMetric, by the table-miss.
