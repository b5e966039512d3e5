package policy

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Config is what rules depend on and what does not change while an agent
// runs.
type Config struct {
	// Families are those the Node's Pods have; addresses of others are left
	// out.
	Families []tables.Family
	Features tables.Features
	// Clock tells when a conjunction id may be given away again.
	Clock func() time.Time
}

// Input is what the rules of a Node follow from.
type Input struct {
	Cluster *cluster.Cluster
	// Changed has at least the Pods and ExternalEntities that differ from those of the last
	// Update; nil: any may.
	Changed []cluster.Key
	// Ports has the switch port of each Pod of this Node that is connected, and of each
	// ExternalEntity of this Node.
	Ports map[cluster.Key]uint32
	// ServiceGroups gives the ids of the groups that choose endpoints of a
	// Service, in a fixed order; nil when no Service has any.
	ServiceGroups func(cluster.Name) []uint32
}

// RuleKey says which rule of which policy a realised rule comes from.
type RuleKey struct {
	Policy    cluster.Key
	Direction tables.Direction
	Index     int // in the policy's list for that direction
	// Part tells the parts of one rule apart; empty when there is only one by
	// nature. See doc.go.
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

// PeerClause is where a rule of a direction has its peers.
func PeerClause(d tables.Direction) tables.Clause {
	if d == tables.Egress {
		return tables.ClauseTo
	}
	return tables.ClauseFrom
}

// SubjectClause is where a rule of a direction has what it applies to.
func SubjectClause(d tables.Direction) tables.Clause {
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
	Pod       cluster.Name
	Port      uint32
	IPs       []netip.Addr
	Direction tables.Direction
	Log       bool // what is dropped is logged: the Pod's Namespace asks for it
}

// Change is what an Update did. It belongs into one bundle: a rule whose
// priority, action or services changed is both in Removed, as it was, and in
// Added, as it is, with the same conjunction id.
type Change struct {
	Removed, Added []*RealisedRule
	Changed        []AddressChange
	// Sets are those that changed. It does not matter which rules have them, if
	// any, and none of them is in here for it.
	Sets []SetChange
	// Released and Isolated are Pods that stopped and began to be isolated. One
	// whose port or addresses changed is in both.
	Released, Isolated []Isolation
}
