package tables

// IngressRule holds the ingress rules of K8s NetworkPolicies. They only ever
// allow. Without AntreaPolicy, what is established passes here (see
// ingressEstablished).
//
// Reads:  addresses, ports and TargetOFPortField of the rules.
// Writes: TFIngressConjIDField, IngressRuleCTLabel.
// Next:   IngressMetric once allowed. Table-miss: IngressDefaultRule.
