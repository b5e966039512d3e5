package policy

import (
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// policySpec is one rule of a policy in the form that both kinds of policies
// share, with the sets of Pods it uses and the parts it is realised in.
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
	// isolates makes it the isolation of the Pods it applies to. It is no rule,
	// unless noRules: then it stands in the tables as a rule that nothing fulfils.
	isolates, noRules bool

	local    []*podSet // of applied
	remote   []*podSet // of peers.choices
	relative []*podSet // of peers.relative, for the namespaces it applies to
	shared   []*AddressSet
	parts    map[string]*RealisedRule
	next     map[string]*RealisedRule // what parts will be, while an Update runs
}

// peerSpec is who a rule speaks of.
type peerSpec struct {
	any      bool
	choices  []podChoice
	relative []relativePeer
	blocks   []cluster.IPBlock
	nodes    []cluster.Selector
	services []cluster.Name // toServices
}

// relativePeer is Pods of the namespace of the Pod that the rule applies to,
// or of namespaces that agree with it in labels.
type relativePeer struct {
	cluster.PeerNamespaces
	pods *cluster.Selector
}

// policyPlan is a policy as specs.
type policyPlan struct {
	specs []*policySpec
	// blocks are the ranks of its rules by direction; of Antrea-native
	// policies only.
	blocks map[tables.Direction]numbers.Block
	// borrows says that the specs depend on other objects than the policy:
	// groups, Services or its tier.
	borrows bool
}

// isolationIndex stands for the index of a rule in the spec that isolates.
const isolationIndex = -1

// Isolates reports whether a realised rule is the isolation of a policy that has
// no rules in the direction. No packet meets it.
func (r *RealisedRule) Isolates() bool { return r.Key.Index == isolationIndex }
