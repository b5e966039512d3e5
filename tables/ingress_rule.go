package tables

// IngressRule holds the ingress rules of K8s NetworkPolicies. They only ever
// allow. Without AntreaPolicy, what is established passes here (see
// ingressEstablished).
//
// A rule is a conjunction: the sources, the ports of the Pods that it is applied to,
// and the protocol's ports are clauses, with an entry for each member. EgressRule has
// more about it.
//
// A policy without ingress rules has a conjunction too, whose sources have no entry.
// No packet meets it. IngressDefaultRule drops all packets to the Pod.
//
// Reads:  addresses, ports and TargetOFPortField of the rules.
// Writes: TFIngressConjIDField, IngressRuleCTLabel.
// Next:   IngressMetric once allowed. Table-miss: IngressDefaultRule.
