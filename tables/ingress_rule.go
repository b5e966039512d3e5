package tables

// IngressRule holds the ingress rules of K8s NetworkPolicies. They only allow. Without
// AntreaPolicy, established connections pass here (see ingressEstablished).
//
// A rule is a conjunction. Its clauses are the sources, the ports of the Pods that it is applied
// to, and the protocol's ports. Each member has an entry. EgressRule explains this.
//
// A policy without ingress rules has a conjunction too, whose sources have no entry. No packet
// fulfils it. IngressDefaultRule drops all packets to the Pod.
//
// Reads:  addresses, ports and TargetOFPortField of the rules.
// Writes: TFIngressConjIDField, IngressRuleCTLabel.
// Next:   IngressMetric once allowed. Table-miss: IngressDefaultRule.
