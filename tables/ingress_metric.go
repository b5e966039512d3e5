package tables

// IngressMetric counts packets and connections by ingress rule, and drops what
// was denied: the entries' counters are the policies' statistics. They are
// made in policy_metric.go, for both directions.
//
// The rule that allowed a connection stands in its ct_label, as in EgressMetric.
//
// Reads:  IngressRuleCTLabel, ct_state; APDenyRegMark and APConjIDField.
// Writes: nothing.
// Next:   ConntrackCommit, which is also the table-miss.
