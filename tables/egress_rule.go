package tables

// EgressRule holds the egress rules of K8s NetworkPolicies. They only allow. Without
// AntreaPolicy, established connections pass here (see egressEstablished).
//
// A rule is a conjunction. Its clauses are the Pods that it is applied to, the destinations and
// the ports, with an entry for each member. So 100 addresses and 10 ports are 110 entries and not
// 1000. The conjunction's own entry acts on packets that match one member of each clause. The
// destinations are a clause even if a rule names none: its entry then matches every packet.
//
// A policy without egress rules has a conjunction too, whose destinations have no entry. No
// packet fulfils it. EgressDefaultRule drops the Pod's packets.
//
// Reads:  addresses and ports of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel.
// Next:   EgressMetric once allowed. Table-miss: EgressDefaultRule.
