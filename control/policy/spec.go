package policy

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// policySpec is one rule of a policy, in a form that both kinds of policies share. It has the
// sets of Pods that the rule uses, and its parts in the tables.
type policySpec struct {
	key    RuleKey // without Part
	name   string
	kind   tables.PolicyKind
	action tables.Action
	order  numbers.Order // of Antrea-native rules

	applied  []podChoice
	services []cluster.Name // appliedTo Services
	peers    peerSpec
	ports    []cluster.PolicyPort
	proto    []cluster.PolicyProtocol
	log      bool
	logLabel string
	l7       []cluster.L7Protocol
	// isolates makes the spec the isolation of the Pods that it applies to, and not a rule. With
	// noRules it is also a rule in the tables, without peers.
	isolates, noRules bool

	local    []*podSet // of applied
	remote   []*podSet // of peers.choices
	relative []*podSet // of peers.relative, for the namespaces of the rule's subjects
	shared   []*AddressSet
	parts    map[string]*RealisedRule
	next     map[string]*RealisedRule // the new parts, during an Update
}

// peerSpec has the peers of a rule.
type peerSpec struct {
	any      bool
	choices  []podChoice
	relative []relativePeer
	blocks   []cluster.IPBlock
	nodes    []cluster.Selector
	services []cluster.Name // toServices
}

// relativePeer chooses Pods of the namespace of the Pod that the rule applies to, or of
// namespaces with equal labels.
type relativePeer struct {
	cluster.PeerNamespaces
	pods *cluster.Selector
}

// policyPlan is the specs of a policy.
type policyPlan struct {
	specs []*policySpec
	// blocks are the ranks of its rules by direction. Only Antrea-native policies have them.
	blocks map[tables.Direction]numbers.Block
	// borrows says that the specs depend on other objects too: groups, Services or a tier.
	borrows bool
}

// isolationIndex replaces the index of a rule in a spec that isolates.
const isolationIndex = -1

// Isolates reports whether a realised rule is the isolation of a policy without rules in the
// direction. It matches no packet.
func (r *RealisedRule) Isolates() bool { return r.Key.Index == isolationIndex }
