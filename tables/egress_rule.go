package tables

// EgressRule holds the egress rules of K8s NetworkPolicies. They only ever
// allow. Without AntreaPolicy, what is established passes here (see
// egressEstablished).
//
// A rule is a conjunction: whom it is applied to, the destinations and the ports are
// clauses, with an entry for each member. So 100 addresses and 10 ports are 110
// entries and not 1000, and what the conjunction's own entry does happens to packets
// that meet one member of each clause.
//
// Reads:  addresses and ports of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel.
// Next:   EgressMetric once allowed. Table-miss: EgressDefaultRule.
