package tables

// EgressMetric counts packets and connections by egress rule, and drops what
// was denied: the entries' counters are the policies' statistics. They are
// made in policy_metric.go, for both directions.
//
// The rule that allowed a connection stands in its ct_label, so that later
// packets count for it although no rule is asked any more.
//
// Reads:  EgressRuleCTLabel, ct_state; APDenyRegMark and APConjIDField.
// Writes: nothing.
// Next:   L3Forwarding, which is also the table-miss.
