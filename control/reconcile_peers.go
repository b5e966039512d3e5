package control

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Sets of addresses as parts (ledger/sharedclause.go). A set that rules share has entries for each place
// where rules use it: a table, a priority and a clause. All K8s rules of a direction use one place. Each
// rank of Antrea-native rules is a place of its own, because OpenFlow separates ranks by priority only.

// kindPeers is the kind of the objects that own these parts in the ledger. No object of the cluster has
// this kind.
const kindPeers cluster.Kind = "Peers"

// clausePlace is a place where rules use a set of addresses.
type clausePlace struct {
	set       *policy.AddressSet
	clause    tables.Clause
	direction tables.Direction
	kind      tables.PolicyKind
	priority  uint16
	// service says that the rules apply to Services, whose clients have other matches.
	service bool
}

// placesOf returns the places where a rule uses shared addresses.
func placesOf(r *policy.RealisedRule) (places []clausePlace) {
	d := r.Rule.Direction
	service := slices.ContainsFunc(r.Rule.To, func(a tables.Address) bool { return a.Service != nil })
	if r.Peers != nil {
		places = append(places, clausePlace{r.Peers, policy.PeerClause(d), d, r.Rule.Kind, r.Rule.Priority, service})
	}
	if r.Subjects != nil {
		places = append(places, clausePlace{r.Subjects, policy.SubjectClause(d), d, r.Rule.Kind, r.Rule.Priority, service})
	}
	return places
}

// part is the part of a place in the ledger.
func (p clausePlace) part() ledger.Part {
	name := fmt.Sprintf("%s-%d-%d-%d", p.direction, p.kind, p.priority, p.set.Number)
	if p.service {
		name += "-service"
	}
	return ledger.Part{Object: cluster.Key{Kind: kindPeers, Name: name}}
}

// placed is a set of addresses at a place.
type placed struct {
	like    tables.Rule // one of the rules; they agree in everything that entries depend on
	users   int
	entries map[tables.Address][]*flow.Entry
	desired *ledger.Desired
}

// peerSets has the parts of all sets, by place.
type peerSets struct {
	at   map[*policy.AddressSet]map[clausePlace]*placed
	idle map[clausePlace]bool // places that lost a rule
}

func newPeerSets() *peerSets {
	return &peerSets{at: map[*policy.AddressSet]map[clausePlace]*placed{}, idle: map[clausePlace]bool{}}
}

// addRule adds a rule to the users of its shared addresses, and returns its clauses.
func (s *peerSets) addRule(v *view, r *policy.RealisedRule, w *wants) (clauses []ledger.SharedClause) {
	for _, at := range placesOf(r) {
		conjunction, ok := v.pipeline.Conjunction(r.Rule, at.clause)
		if !ok {
			continue
		}
		set := s.at[at.set][at]
		if set == nil {
			set = &placed{like: r.Rule, entries: map[tables.Address][]*flow.Entry{}, desired: &ledger.Desired{Shared: true}}
			if s.at[at.set] == nil {
				s.at[at.set] = map[clausePlace]*placed{}
			}
			s.at[at.set][at] = set
			set.change(v, at, policy.AddressDelta{Added: at.set.Addresses()})
			w.want(at.part(), set.desired)
		}
		set.users++
		clauses = append(clauses, ledger.SharedClause{By: at.part(), Conjunction: conjunction, Origin: ruleOrigin(r, "")})
	}
	return clauses
}

// removeRule removes a rule from the users of its shared addresses.
func (s *peerSets) removeRule(r *policy.RealisedRule) {
	for _, at := range placesOf(r) {
		if set := s.at[at.set][at]; set != nil {
			set.users--
			s.idle[at] = true
		}
	}
}

// changeSet changes the addresses of a set at all its places.
func (s *peerSets) changeSet(v *view, c policy.SetChange, w *wants) {
	for at, set := range s.at[c.Set] {
		set.change(v, at, c.AddressDelta)
		w.want(at.part(), set.desired)
	}
}

// dropUnused removes the places without rules.
func (s *peerSets) dropUnused(w *wants) {
	for at := range s.idle {
		if s.at[at.set][at].users == 0 {
			delete(s.at[at.set], at)
			if len(s.at[at.set]) == 0 {
				delete(s.at, at.set)
			}
			w.want(at.part(), nil)
		}
	}
	clear(s.idle)
}

// clear removes all places.
func (s *peerSets) clear(w *wants) {
	for _, places := range s.at {
		for at := range places {
			w.want(at.part(), nil)
		}
	}
	*s = *newPeerSets()
}

// change adds the entries of new addresses and removes those of gone ones.
func (p *placed) change(v *view, at clausePlace, d policy.AddressDelta) {
	gone := map[*flow.Entry]bool{}
	for _, a := range d.Removed {
		for _, e := range p.entries[a] {
			gone[e] = true
		}
		delete(p.entries, a)
	}
	next := &ledger.Desired{Shared: true, Entries: make([]ledger.Wanted, 0, len(p.desired.Entries)+len(d.Added))}
	for _, w := range p.desired.Entries {
		if !gone[w.Entry] {
			next.Entries = append(next.Entries, w)
		}
	}
	origin := &ledger.Origin{Object: at.part().Object}
	for _, a := range d.Added {
		entries := v.pipeline.ClauseEntry(p.like, at.clause, a)
		p.entries[a] = entries
		for _, e := range entries {
			e.Actions = nil
			next.Entries = append(next.Entries, ledger.Wanted{Entry: e, Origin: origin})
		}
	}
	p.desired = next
}
