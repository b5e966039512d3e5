// Package tables builds the flow entries of Antrea's pipeline from plain values: a Pod, a peer
// Node, a Service address, a policy rule. All functions are pure: no state, no locks, no
// Kubernetes types, no logging.
//
// There are two ways to read it. By table: each table has a file of its name. The head says what
// the table is for, what it reads, what it writes and where packets go next. Begin with
// conntrack_state.go, a short one. By object:
//
//	objects.go           the entries that a Pod, a Service … has, by table
//	values.go            the values that entries are made from
//
// All tables share:
//
//	pipeline.go                         which tables there are, their order and table-misses
//	fields.go                           bits of registers, ct_mark and ct_label by name
//	marktext.go                         these bits in words, for people
//	entry.go, l4match.go                the words in which entries are written
//	family.go                           the differences between IPv4 and IPv6
//	policy_rule.go                      entries of policies, in all tables that hold rules
//	policy_action.go, policy_metric.go
//	meters.go, packetin.go              the rate and the meaning of packet-ins to the agent
//
// This pipeline is one of several programs. Package tables/layout has the parts that all programs
// share, and tables/programs lists them.
//
// Facts and names follow Antrea v1.15. Services and policies reach this package only as the
// values in values.go.
package tables
