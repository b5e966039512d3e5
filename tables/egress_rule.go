package tables

// EgressRule holds the egress rules of K8s NetworkPolicies. They only ever
// allow. Without AntreaPolicy, what is established passes here (see
// egressEstablished).
//
// A rule is a conjunction: whom it is applied to, the destinations and the ports are
// clauses, with an entry for each member. So 100 addresses and 10 ports are 110
// entries and not 1000, and what the conjunction's own entry does happens to packets
// that meet one member of each clause. The destinations are a clause even if a rule
// names none: its entry then matches every packet.
//
// A policy without egress rules has a conjunction too, whose destinations have no
// entry. No packet meets it. EgressDefaultRule drops what the Pod sends.
//
// Reads:  addresses and ports of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel.
// Next:   EgressMetric once allowed. Table-miss: EgressDefaultRule.
