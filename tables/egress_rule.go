package tables

// EgressRule holds the egress rules of K8s NetworkPolicies. They only ever
// allow. Without AntreaPolicy, what is established passes here (see
// egressEstablished).
//
// Reads:  addresses and ports of the rules.
// Writes: TFEgressConjIDField, EgressRuleCTLabel.
// Next:   EgressMetric once allowed. Table-miss: EgressDefaultRule.
