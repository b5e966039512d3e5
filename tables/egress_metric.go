package tables

// EgressMetric counts packets and connections by egress rule, and drops denied
// packets. The entries' counters are the policies' statistics. policy_metric.go
// makes the entries of both directions.
//
// The ct_label of a connection holds the rule that allowed it. So later packets
// count for that rule, although no policy table matches them.
//
// Reads:  EgressRuleCTLabel, ct_state; APDenyRegMark and APConjIDField.
// Writes: nothing.
// Next:   L3Forwarding, which is also the table-miss.
