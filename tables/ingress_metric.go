package tables

// IngressMetric counts packets and connections by ingress rule, and drops denied
// packets. The entries' counters are the policies' statistics. policy_metric.go
// makes the entries of both directions.
//
// The ct_label of a connection holds the rule that allowed it, as in
// EgressMetric.
//
// Reads:  IngressRuleCTLabel, ct_state; APDenyRegMark and APConjIDField.
// Writes: nothing.
// Next:   ConntrackCommit, which is also the table-miss.
