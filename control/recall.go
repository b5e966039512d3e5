package control

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Remembering and recalling. What a Reconciler knows that does not follow from
// the objects alone is which numbers it gave them: it follows from the order in
// which they came. An agent that is started again finds the entries of the one
// before in the switch; were the numbers others, nearly every entry would
// differ, and what connections carry in their labels would mean another rule.
//
// So the agent keeps a Memory beside the entries. Recall gives both to a new
// Reconciler, before its first Update: the ledger then has entries that nobody
// claims, the first step looks at all of them, and its bundle is the difference
// between what was and what is wanted. A number that nobody asked for in that
// Update is free again.

// Memory is what a Reconciler has given out besides entries. It is plain data,
// to be kept as JSON.
type Memory struct {
	Groups []GroupNumber
	Marks  []MarkNumber
	// Rules are conjunction ids, and VLANs those of rules with application
	// protocols (their Part is empty).
	Rules, VLANs []RuleNumber
	Priorities   []RulePriority
	// Owners are the Pods' addresses: connections of one that has the same owner
	// still are not forgotten.
	Owners []AddressOwner
	// Node is what the switch asks of the Node.
	Node NodeSide
}

// GroupNumber is the id of a group of a Service's port.
type GroupNumber struct {
	Service Key
	Port    string // its name
	Proto   Protocol
	Family  tables.Family
	Cluster bool // of all endpoints; else of those on this Node
	ID      uint32
}

// MarkNumber is the packet mark of an Egress' address.
type MarkNumber struct {
	Addr netip.Addr
	ID   uint32
}

// RuleNumber is a number of a policy's rule.
type RuleNumber struct {
	Rule RuleKey
	ID   uint32
}

// RulePriority is a rank of rules and its priority in the table of a kind of
// policies and a direction. They are listed by falling priority.
type RulePriority struct {
	Kind      tables.PolicyKind
	Direction tables.Direction
	Tier      int32
	Rank      float64 // the policy's own priority
	Index     int
	Priority  uint16
}

// AddressOwner is who has an address.
type AddressOwner struct {
	Addr  netip.Addr
	Owner Key
}

// Remember is the memory now. also is called while nothing changes, to look at
// the switch at the same moment.
func (r *Reconciler) Remember(also func()) *Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &Memory{Groups: r.services.groupNumbers(), Marks: r.egresses.markNumbers(), Node: *r.sides.total()}
	if r.policies.policies != nil {
		r.policies.policies.remember(m)
	}
	for p, c := range r.ledger.parts {
		for _, a := range c.desired.Owns {
			m.Owners = append(m.Owners, AddressOwner{a, p.Object})
		}
	}
	also()
	return m
}

// Recall says what the switch has from a process before, and with which
// numbers. It has to come before the first Update. After an error nothing of it
// was taken: a number is out of its range, or given twice.
func (r *Reconciler) Recall(m *Memory, p *flow.Program) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil {
		return errors.New("the Reconciler has seen a snapshot already")
	}
	groups, marks := newGroupNumbers(), newMarks()
	for _, g := range m.Groups {
		if err := groups.recall(g.owner(), g.ID); err != nil {
			return fmt.Errorf("group of %s: %w", g.Service, err)
		}
	}
	for _, k := range m.Marks {
		if err := marks.recall(k.Addr, k.ID); err != nil {
			return fmt.Errorf("mark of %v: %w", k.Addr, err)
		}
	}
	if err := NewPolicies(PolicyConfig{Clock: r.policies.clock}).recall(m); err != nil {
		return err
	}
	r.services.ids, r.egresses.marks, r.policies.recalled = groups, marks, m
	r.owned = map[AddressOwner]bool{}
	for _, o := range m.Owners {
		r.owned[o] = true
	}
	r.ledger.adopt(p)
	r.sides.sum = &m.Node
	return nil
}

// forgetRecalled frees what was recalled and nobody asked for.
func (r *Reconciler) forgetRecalled() {
	r.services.ids.forgetUnclaimed()
	r.egresses.marks.forgetUnclaimed()
	if p := r.policies.policies; p != nil {
		p.forgetRecalled()
	}
	r.owned, r.policies.recalled = nil, nil
}

func (g *GroupNumber) owner() groupOwner {
	kind := localGroup
	if g.Cluster {
		kind = clusterGroup
	}
	return groupOwner{g.Service, g.Port, g.Proto, g.Family, kind}
}

func (b *serviceBuilder) groupNumbers() (all []GroupNumber) {
	for o, id := range b.ids.of {
		all = append(all, GroupNumber{o.service, o.port, o.proto, o.family, o.kind == clusterGroup, id})
	}
	return all
}

func (b *egressBuilder) markNumbers() (all []MarkNumber) {
	for a, id := range b.marks.of {
		all = append(all, MarkNumber{a, id})
	}
	return all
}

// adopt notes what the switch has: nobody claims it yet.
func (l *ledger) adopt(p *flow.Program) {
	for _, e := range p.Entries {
		r := l.open(e)
		r.has = e
		l.adopted = append(l.adopted, r)
	}
	for _, g := range p.Groups {
		l.groups[g.ID] = &idRow[flow.Group]{has: g}
	}
	for _, m := range p.Meters {
		l.meters[m.ID] = &idRow[flow.Meter]{has: m}
	}
	l.inherits = true
}

// touchAdopted makes a step look at all that was adopted, so that what nobody
// claims goes with its bundle.
func (s *ledgerStep) touchAdopted() {
	if !s.l.inherits {
		return
	}
	for _, r := range s.l.adopted {
		s.touch(r)
	}
	for id := range s.l.groups {
		s.groups = append(s.groups, id)
	}
	for id := range s.l.meters {
		s.meters = append(s.meters, id)
	}
}

// Inherits reports whether the switch still has what Recall said, and not yet
// what a snapshot asks for.
func (r *Reconciler) Inherits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.inherits
}
