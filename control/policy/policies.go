package policy

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Config is the input of rules that does not change while an agent runs.
type Config struct {
	// Families are those of the Node's Pods. Rules leave out addresses of other families.
	Families []tables.Family
	Features tables.Features
	// Clock times the rest of freed conjunction ids.
	Clock func() time.Time
}

// Input is the input of an Update.
type Input struct {
	Cluster *cluster.Cluster
	// Changed has at least the Pods and ExternalEntities that changed since the last Update;
	// nil: all may have changed.
	Changed []cluster.Key
	// Ports has the switch port of each Pod of this Node that is connected, and of each
	// ExternalEntity of this Node.
	Ports map[cluster.Key]uint32
	// ServiceGroups returns the ids of the groups that choose endpoints of a Service, in a
	// fixed order. It is nil if no Service has a group.
	ServiceGroups func(cluster.Name) []uint32
}

// RuleKey names the rule of a policy that a realised rule comes from.
type RuleKey struct {
	Policy    cluster.Key
	Direction tables.Direction
	Index     int // in the policy's list for that direction
	// Part distinguishes the parts of one rule. It is empty for a rule that cannot have
	// several. See doc.go.
	Part string
}

// RealisedRule is a rule in this Node's tables. It never changes; neither do the slices of
// Rule, which other rules may share.
type RealisedRule struct {
	Key      RuleKey
	Name     string // the rule's name, may be empty
	LogLabel string // of an Antrea-native rule that logs, may be empty
	Rule     tables.Rule
	// Peers, if not nil, has the addresses of Rule's peer clause, which is From for ingress
	// and To for egress. They change without a change of the rule.
	Peers *AddressSet
	// Subjects, if not nil, has what the rule applies to: the addresses of the other clause.
	Subjects *AddressSet
}

// PeerClause is the clause of a direction's rules that holds their peers.
func PeerClause(d tables.Direction) tables.Clause {
	if d == tables.Egress {
		return tables.ClauseTo
	}
	return tables.ClauseFrom
}

// SubjectClause is the clause of a direction's rules that holds what they apply to.
func SubjectClause(d tables.Direction) tables.Clause {
	if d == tables.Egress {
		return tables.ClauseFrom
	}
	return tables.ClauseTo
}

// AddressDelta has the addresses that a clause gained and lost.
type AddressDelta struct{ Added, Removed []tables.Address }

// Empty reports whether nothing changed.
func (d AddressDelta) Empty() bool { return len(d.Added)+len(d.Removed) == 0 }

// SetChange is a set whose addresses changed.
type SetChange struct {
	Set *AddressSet // with the new addresses
	AddressDelta
}

// AddressChange is a realised rule of which only its own addresses changed.
type AddressChange struct {
	*RealisedRule // with the new addresses
	From, To      AddressDelta
}

// Isolation is a Pod of this Node that K8s NetworkPolicies isolate in a direction: packets that
// no rule allows are dropped.
type Isolation struct {
	Pod       cluster.Name
	Port      uint32
	IPs       []netip.Addr
	Direction tables.Direction
	Log       bool // log the dropped packets, as the Pod's Namespace asks
}

// Change is the result of an Update. It belongs in one bundle. A rule whose priority, action or
// services changed is in Removed, as it was, and in Added, as it is. Both have the same
// conjunction id.
type Change struct {
	Removed, Added []*RealisedRule
	Changed        []AddressChange
	// Sets are the sets whose addresses changed. The rules that use them are not in Changed
	// for this.
	Sets []SetChange
	// Released and Isolated are the Pods whose isolation ended and began. A Pod whose port or
	// addresses changed is in both.
	Released, Isolated []Isolation
}
