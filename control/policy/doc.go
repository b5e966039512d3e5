// Package policy turns NetworkPolicies and Antrea-native policies into rules for the tables of
// one Node. Policies.Update takes a snapshot of the cluster and returns what changed. The
// package installs nothing. One goroutine uses a Policies.
//
// A rule has two forms on its way:
//
//   - Its spec says the same as the object, in one form for both kinds of policies.
//   - Its parts stand in this Node's tables. A rule that applies to no Pod here has none.
//     Most rules have one. A rule has several if a named port or a namespace Self means
//     Most rules have one. A rule has several if a named port or a namespace Self means
//
// A part keeps its conjunction id as long as it lives. A part of an Antrea-native policy also
// has a priority (package numbers).
//
// The peers of a rule change with every Pod of the cluster. All rules that name the same Pods
// therefore share a set of addresses, and a set reports which addresses it gained and lost. One
// Pod in ten thousand costs the entries of one Pod, however many rules name it. The Pods of
// this Node that a rule applies to are sets too, unless the rule has several parts.
//
//	policies.go                      input, output and a rule in the tables
//	addresssets.go, addresslists.go  Pods that rules name, and their addresses
//	spec.go, k8s.go, antrea.go       a policy as specs
//	ruleports.go, ipblock.go             ports and prefixes of a spec
//	successors.go                    the successors of an edited policy's rules
//	restore.go                       the numbers of rules over a restart
//	update.go                        an Update, whose stages follow
//	input.go                           what changed in the cluster, and which specs it concerns
//	realise.go                         the parts of specs
//	rank.go                            priorities
//	publish.go                         the difference to the last Update
//	reports.go                       rules about reports of IGMP, on which the agent decides
//	reach.go, rulecounters.go        what policies apply to, and what their rules counted
//	spans.go                         the Nodes that a policy applies to
package policy
