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

// Remembering and restoring. The numbers that a Reconciler assigned depend on the order in which objects
// came, so they do not follow from the objects alone. A restarted agent finds the entries of the earlier
// process in the switch. With other numbers, nearly every entry would differ, and the labels of
// connections would name other rules.
//
// So the agent stores a Memory beside the entries. Restore gives both to a new Reconciler before its
// first Update. The ledger then has unclaimed entries. The first step compares all of them with what
// objects want, and its bundle is the difference. Numbers that the first Update did not claim are freed.

// Memory has what a Reconciler assigned apart from entries. It is plain data for JSON.
type Memory struct {
	Groups []GroupNumber
	Marks  []MarkNumber
	policy.RuleNumbers
	// Owners are the owners of addresses. If the owner of an address stays the same, its
	// connections stay.
	Owners []ledger.AddressOwner
	// Node is what the switch wants of the Node.
	Node ledger.NodeSide
	// Multicast are the groups with members, and MulticastNumbers their numbers.
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
	Port    string // name
	Proto   cluster.Protocol
	Family  tables.Family
	Cluster bool // the group of all endpoints, not that of this Node's endpoints
	ID      uint32
}

// MarkNumber is the packet mark of an Egress' address.
type MarkNumber struct {
	Addr netip.Addr
	ID   uint32
}

// Remember returns the current Memory.
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

// Restore sets the entries and numbers that the switch has from an earlier process. It must precede the
// first Update. It returns an error, and changes nothing, if a number is out of its range or given twice.
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

// forgetRestored frees the restored numbers that nothing claimed.
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

// Inherits reports whether the switch still has the entries of Restore, and none of a snapshot.
func (r *Reconciler) Inherits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.Inherited()
}
