// Package tables builds the flow entries of Antrea's pipeline from plain
// values: a Pod, a peer Node, a Service address, a policy rule. Everything here
// is a pure function: no state, no locks, no Kubernetes types, no logging.
//
// There are two ways in. By table: each has a file of its name, whose head says
// what the table is for, what it reads, what it writes and where packets go
// next (conntrack_state.go is a short one to begin with). By object:
//
//	objects.go           the entries that a Pod, a Service … has, by table
//	values.go            the values that entries are made from
//
// What they share:
//
//	pipeline.go                         which tables there are, their order and table-misses
//	fields.go                           bits of registers, ct_mark and ct_label by name
//	marktext.go                         these bits in words, for people
//	entry.go, l4match.go                the words in which entries are written
//	family.go                           what differs between IPv4 and IPv6
//	policy_rule.go                      entries of policies, in whichever table they are
//	policy_action.go, policy_metric.go
//	meters.go, packetin.go              what is sent to the agent, and what it means
//
// It is one of several programs: package tables/layout has what they share, and
// tables/programs lists them.
//
// Facts and names follow Antrea v1.15; a Service or a policy is not known
// here, only what of it reaches the tables.
package tables
