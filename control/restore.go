package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Remembering and restoring. What a Reconciler knows that does not follow from
// the objects alone is which numbers it gave them: it follows from the order in
// which they came. An agent that is started again finds the entries of the one
// before in the switch; were the numbers others, nearly every entry would
// differ, and what connections carry in their labels would mean another rule.
//
// So the agent keeps a Memory beside the entries. Restore gives both to a new
// Reconciler, before its first Update: the ledger then has entries that nobody
// claims, the first step looks at all of them, and its bundle is the difference
// between what was and what is wanted. A number that nobody asked for in that
// Update is free again.

// Memory is what a Reconciler has given out besides entries. It is plain data,
// to be kept as JSON.
type Memory struct {
	Groups []GroupNumber
	Marks  []MarkNumber
	policy.RuleNumbers
	// Owners are the Pods' addresses: connections of one that has the same owner
	// still are not forgotten.
	Owners []ledger.AddressOwner
	// Node is what the switch asks of the Node.
	Node ledger.NodeSide
	// Multicast are the multicast groups that have members, and MulticastNumbers their numbers.
	Multicast        []MulticastGroup  `json:",omitempty"`
	MulticastNumbers []MulticastNumber `json:",omitempty"`
}

// MulticastNumber is the id of the group of a multicast address.
type MulticastNumber struct {
	Addr netip.Addr
	ID   uint32
}

// GroupNumber is the id of a group of a Service's port.
type GroupNumber struct {
	Service cluster.Key
	Port    string // its name
	Proto   cluster.Protocol
	Family  tables.Family
	Cluster bool // of all endpoints; else of those on this Node
	ID      uint32
}

// MarkNumber is the packet mark of an Egress' address.
type MarkNumber struct {
	Addr netip.Addr
	ID   uint32
}

// Remember is the memory now.
func (r *Reconciler) Remember() *Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &Memory{Groups: r.services.groupNumbers(), Marks: r.egresses.markNumbers(), Node: *r.sides.Total(), Multicast: r.multicast.groups}
	for a, id := range r.multicast.ids.Assigned {
		m.MulticastNumbers = append(m.MulticastNumbers, MulticastNumber{a, id})
	}
	if r.policies.policies != nil {
		m.RuleNumbers = r.policies.policies.Numbers()
	}
	m.Owners = slices.Collect(r.ledger.Owners())
	return m
}

// Restore says what the switch has from a process before, and with which
// numbers. It has to come before the first Update. After an error nothing of it
// was taken: a number is out of its range, or given twice.
func (r *Reconciler) Restore(m *Memory, p *flow.Program) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil {
		return errors.New("the Reconciler has seen a snapshot already")
	}
	groups, marks, multicast := newGroupNumbers(), newMarks(), newMulticastNumbers()
	for _, g := range m.Groups {
		if err := groups.Restore(g.owner(), g.ID); err != nil {
			return fmt.Errorf("group of %s: %w", g.Service, err)
		}
	}
	for _, k := range m.Marks {
		if err := marks.Restore(k.Addr, k.ID); err != nil {
			return fmt.Errorf("mark of %v: %w", k.Addr, err)
		}
	}
	for _, k := range m.MulticastNumbers {
		if err := multicast.Restore(k.Addr, k.ID); err != nil {
			return fmt.Errorf("group of %v: %w", k.Addr, err)
		}
	}
	if err := policy.New(policy.Config{Clock: r.policies.clock}).Restore(&m.RuleNumbers); err != nil {
		return err
	}
	r.services.ids, r.egresses.marks, r.policies.restored = groups, marks, m
	r.multicast.ids, r.multicast.groups = multicast, m.Multicast
	r.owned = map[ledger.AddressOwner]bool{}
	for _, o := range m.Owners {
		r.owned[o] = true
	}
	r.ledger.Adopt(p)
	r.sides.Restore(&m.Node)
	return nil
}

// forgetRestored frees what was restored and nobody asked for.
func (r *Reconciler) forgetRestored() {
	r.services.ids.FreeUnclaimed()
	r.egresses.marks.FreeUnclaimed()
	r.multicast.ids.FreeUnclaimed()
	if p := r.policies.policies; p != nil {
		p.FreeUnclaimed()
	}
	r.owned, r.policies.restored = nil, nil
}

func (g *GroupNumber) owner() groupOwner {
	kind := localGroup
	if g.Cluster {
		kind = clusterGroup
	}
	return groupOwner{g.Service, g.Port, g.Proto, g.Family, kind}
}

func (b *serviceBuilder) groupNumbers() (all []GroupNumber) {
	for o, id := range b.ids.Assigned {
		all = append(all, GroupNumber{o.service, o.port, o.proto, o.family, o.kind == clusterGroup, id})
	}
	return all
}

func (b *egressBuilder) markNumbers() (all []MarkNumber) {
	for a, id := range b.marks.Assigned {
		all = append(all, MarkNumber{a, id})
	}
	return all
}

// Inherits reports whether the switch still has what Restore said, and not yet
// what a snapshot asks for.
func (r *Reconciler) Inherits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.Inherited()
}
