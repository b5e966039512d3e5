package control

// Policies: from NetworkPolicies and Antrea-native policies to the rules that
// package tables makes entries of.
//
// A rule of a policy has two forms on its way. Its *spec* (policies_k8s.go,
// policies_antrea.go) says the same as the object, in one form for both kinds
// of policies. Its *parts* (policies_realise.go) are what stands in this Node's
// tables: none when it applies to no Pod here, one as a rule, several when a
// named port or a namespace Self means something else for some of its Pods. A
// part has a conjunction id that it keeps as long as it lives (conjids.go), and
// those of Antrea-native policies a priority (priorities.go).
//
// Who is a peer of a rule changes with every Pod of the cluster. Peers are
// therefore sets of addresses shared by all rules that name the same Pods
// (addresssets.go, addresslists.go), and a change is told once for a set, as
// addresses that came and went: one Pod in ten thousand costs the entries of one
// Pod, however many rules name it. The Pods of this Node that a rule applies to
// are such sets too, unless the rule means something else for some of them.
//
// An Update goes in stages, a file each: what changed of the cluster and whom it
// concerns (policies_input.go), plans of policies that changed
// (policies_update.go), their parts (policies_realise.go), priorities
// (policies_rank.go), and the difference to what was (policies_publish.go).
//
// All of this is pure: a snapshot goes in, what changed comes out, and nothing
// is installed here. A Policies is used from one goroutine.

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/tables"
)

// PolicyConfig is what rules depend on and what does not change while an agent
// runs.
type PolicyConfig struct {
	// Families are those the Node's Pods have; addresses of others are left
	// out.
	Families []tables.Family
	Features tables.Features
	// Clock tells when a conjunction id may be given away again.
	Clock func() time.Time
}

// PolicyInput is what the rules of a Node follow from.
type PolicyInput struct {
	Cluster *Cluster
	// Changed has at least the Pods that differ from those of the last Update;
	// nil: any may.
	Changed []Key
	// Ports has the switch port of each Pod of this Node that is connected.
	Ports map[Name]uint32
	// ServiceGroups gives the ids of the groups that choose endpoints of a
	// Service, in a fixed order; nil when no Service has any.
	ServiceGroups func(Name) []uint32
}

// RuleKey says which rule of which policy a realised rule comes from.
type RuleKey struct {
	Policy    Key
	Direction tables.Direction
	Index     int // in the policy's list for that direction
	// Part tells the parts of one rule apart; empty when there is only one by
	// nature. See the head of policies.go.
	Part string
}

// RealisedRule is a rule as it stands in this Node's tables. It never changes;
// neither do the slices of Rule, which other rules may share.
type RealisedRule struct {
	Key      RuleKey
	Name     string // the rule's name, may be empty
	LogLabel string // of an Antrea-native rule that logs, may be empty
	Rule     tables.Rule
	// Peers, when not nil, has the addresses of Rule's peer clause, which is
	// From for ingress and To for egress; they change without the rule.
	Peers *AddressSet
	// Subjects is likewise what the rule applies to, of the other clause.
	Subjects *AddressSet
}

// peerClause is where a rule of a direction has its peers.
func peerClause(d tables.Direction) tables.Clause {
	if d == tables.Egress {
		return tables.ClauseTo
	}
	return tables.ClauseFrom
}

// subjectClause is where a rule of a direction has what it applies to.
func subjectClause(d tables.Direction) tables.Clause {
	if d == tables.Egress {
		return tables.ClauseFrom
	}
	return tables.ClauseTo
}

// AddressDelta is the addresses that a clause gained and lost.
type AddressDelta struct{ Added, Removed []tables.Address }

// Empty reports whether nothing changed.
func (d AddressDelta) Empty() bool { return len(d.Added)+len(d.Removed) == 0 }

// SetChange is a set of addresses that differs from before.
type SetChange struct {
	Set *AddressSet // as it is now
	AddressDelta
}

// AddressChange is a realised rule that differs from before in addresses of its
// own only.
type AddressChange struct {
	*RealisedRule // as it is now
	From, To      AddressDelta
}

// Isolation is a Pod of this Node that K8s NetworkPolicies isolate in a
// direction: what no rule allows is dropped.
type Isolation struct {
	Pod       Name
	Port      uint32
	IPs       []netip.Addr
	Direction tables.Direction
	Log       bool // what is dropped is logged: the Pod's Namespace asks for it
}

// PolicyChange is what an Update did. It belongs into one bundle: a rule whose
// priority, action or services changed is both in Removed, as it was, and in
// Added, as it is, with the same conjunction id.
type PolicyChange struct {
	Removed, Added []*RealisedRule
	Changed        []AddressChange
	// Sets are those that changed. It does not matter which rules have them, if
	// any, and none of them is in here for it.
	Sets []SetChange
	// Released and Isolated are Pods that stopped and began to be isolated. One
	// whose port or addresses changed is in both.
	Released, Isolated []Isolation
}

// Empty reports whether nothing changed.
func (c *PolicyChange) Empty() bool {
	return len(c.Removed)+len(c.Added)+len(c.Changed)+len(c.Sets)+len(c.Released)+len(c.Isolated) == 0
}
