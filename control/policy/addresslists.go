package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/tables"
)

// Sorted slices of addresses, and sets that rules share. A rule may have several kinds of
// peers, and other rules the same. All of them share one set of addresses. If the Pods of a
// set change, only the changed addresses cost work.

// compareAddress orders addresses: prefixes, then ports, then groups.
func compareAddress(a, b tables.Address) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(serviceGroup(a), serviceGroup(b)),
		a.Prefix.Addr().Compare(b.Prefix.Addr()),
		cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
	)
}

func serviceGroup(a tables.Address) uint32 {
	if a.Service == nil {
		return 0
	}
	return a.Service.Group
}

func sameAddress(a, b tables.Address) bool { return compareAddress(a, b) == 0 }

// sortAddresses sorts a slice in place and removes duplicates.
func sortAddresses(all []tables.Address) []tables.Address {
	slices.SortFunc(all, compareAddress)
	return slices.CompactFunc(all, sameAddress)
}

// replaceAddresses copies a sorted slice without the addresses gone and with the addresses
// come. It returns false if an address of come is there already.
func replaceAddresses(all, gone, come []tables.Address) ([]tables.Address, bool) {
	next := make([]tables.Address, 0, len(all)+len(come))
	next = append(next, all...)
	for _, a := range gone {
		if i, found := slices.BinarySearchFunc(next, a, compareAddress); found {
			next = slices.Delete(next, i, i+1)
		}
	}
	for _, a := range come {
		i, found := slices.BinarySearchFunc(next, a, compareAddress)
		if found {
			return next, false
		}
		next = slices.Insert(next, i, a)
	}
	return next, true
}

// compareAddresses returns the addresses that a sorted slice gained and lost.
func compareAddresses(before, after []tables.Address) (d AddressDelta) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && compareAddress(before[0], after[0]) < 0:
			d.Removed = append(d.Removed, before[0])
			before = before[1:]
		case len(before) == 0 || compareAddress(before[0], after[0]) > 0:
			d.Added = append(d.Added, after[0])
			after = after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return d
}

// addressDeltas caches the differences between pairs of slices. Rules that share slices share
// the work.
type addressDeltas map[[2]*tables.Address]AddressDelta

// between returns the addresses that a sorted slice gained and lost.
func (m addressDeltas) between(before, after []tables.Address) AddressDelta {
	if len(before) == 0 || len(after) == 0 {
		return AddressDelta{Added: after, Removed: before}
	}
	if len(before) == len(after) && &before[0] == &after[0] {
		return AddressDelta{}
	}
	key := [2]*tables.Address{&before[0], &after[0]}
	d, known := m[key]
	if !known {
		d = compareAddresses(before, after)
		m[key] = d
	}
	return d
}

// AddressSet has the addresses of some sets of Pods and some fixed addresses. They are the
// peers of a rule, or what it applies to; rules with the same ones share the set. It lives as
// long as a rule uses it.
type AddressSet struct {
	of     addressKind
	Number int // unique among the sets of a Policies
	key    string
	sets   []*podSet
	inputs [][]tables.Address // of each of sets, as included in all; the last has the fixed ones
	all    []tables.Address   // sorted, without duplicates, never written
	users  int
}

// addressKind says which addresses of which Pods a set has.
type addressKind uint8

const (
	peersOfRules      addressKind = iota // of all Pods
	subjectsByAddress                    // of this Node's Pods: the addresses that they send from
	subjectsByPort                       // of this Node's Pods: the ports where packets reach them
)

// list returns the addresses that a set of Pods contributes.
func (u *AddressSet) list(set *podSet, families []tables.Family) []tables.Address {
	if u.of == subjectsByPort {
		return set.ports()
	}
	return set.list(families)
}

// Addresses returns the current addresses, sorted. The caller must not write them.
func (u *AddressSet) Addresses() []tables.Address { return u.all }

// addressSets holds each set of addresses once.
type addressSets struct {
	byKey map[string]*AddressSet
	last  int // the highest Number so far
}

// acquireSet returns the AddressSet of some sets of Pods and fixed addresses, both sorted. Each call
// needs a releaseSet.
func (m *addressSets) acquireSet(of addressKind, sets []*podSet, fixed []tables.Address, families []tables.Family) *AddressSet {
	var key strings.Builder
	key.WriteByte('0' + byte(of))
	for _, set := range sets {
		key.WriteString(set.key + "\n")
	}
	for _, a := range fixed {
		key.WriteString(addressKey(a))
	}
	u := m.byKey[key.String()]
	if u != nil && !slices.Equal(u.sets, sets) {
		m.forget(u) // its sets of Pods were released, so no rule uses it
		u = nil
	}
	if u == nil {
		m.last++
		u = &AddressSet{of: of, Number: m.last, key: key.String(), sets: sets, inputs: make([][]tables.Address, len(sets)+1)}
		u.inputs[len(sets)] = fixed
		m.byKey[u.key] = u
		for _, set := range sets {
			set.parents[u] = true
		}
		u.build(families)
	}
	u.users++
	return u
}

// releaseSet ends one use. The set stays until sweep, because most uses end when another begins.
func (m *addressSets) releaseSet(u *AddressSet) { u.users-- }

// sweep forgets the sets without users.
func (m *addressSets) sweep() {
	for _, u := range m.byKey {
		if u.users == 0 {
			m.forget(u)
		}
	}
}

func (m *addressSets) forget(u *AddressSet) {
	delete(m.byKey, u.key)
	for _, set := range u.sets {
		delete(set.parents, u)
	}
}

// addressKey is a text that is unique to an address.
func addressKey(a tables.Address) string {
	if a.Group != 0 {
		return fmt.Sprintf("group %d\n", a.Group)
	}
	return a.Prefix.String() + "\n"
}

// update brings the set up to date and returns what it gained and lost.
func (u *AddressSet) update(families []tables.Family, deltas addressDeltas) AddressDelta {
	before := u.all
	for i, set := range u.sets {
		now := u.list(set, families)
		d := deltas.between(u.inputs[i], now)
		u.inputs[i] = now
		if u.single() {
			u.all = now
			return d
		}
		d = AddressDelta{u.notElsewhere(i, d.Added), u.notElsewhere(i, d.Removed)}
		if !d.Empty() {
			u.change(d, deltas)
		}
	}
	return deltas.between(before, u.all)
}

// single reports whether the set has one set of Pods and nothing more. It then uses the slice
// of that set.
func (u *AddressSet) single() bool { return len(u.sets) == 1 && len(u.inputs[1]) == 0 }

func (u *AddressSet) build(families []tables.Family) {
	all := slices.Clone(u.inputs[len(u.sets)])
	for i, set := range u.sets {
		u.inputs[i] = u.list(set, families)
		all = append(all, u.inputs[i]...)
	}
	if u.single() {
		u.all = u.inputs[0]
		return
	}
	u.all = sortAddresses(all)
}

// notElsewhere returns the addresses that no other input has.
func (u *AddressSet) notElsewhere(here int, addresses []tables.Address) (rest []tables.Address) {
	for _, a := range addresses {
		if !slices.ContainsFunc(u.inputs[:here], has(a)) && !slices.ContainsFunc(u.inputs[here+1:], has(a)) {
			rest = append(rest, a)
		}
	}
	return rest
}

// has finds an address in sorted slices.
func has(a tables.Address) func([]tables.Address) bool {
	return func(all []tables.Address) bool {
		_, found := slices.BinarySearchFunc(all, a, compareAddress)
		return found
	}
}

// change replaces the slice. It caches the difference for between, which holds only if this is
// the first change of the Update; otherwise between compares the slices.
func (u *AddressSet) change(d AddressDelta, deltas addressDeltas) {
	before := u.all
	if len(d.Added)+len(d.Removed) > bulkChange {
		u.all = mergeDelta(before, d)
		return
	}
	u.all, _ = replaceAddresses(before, d.Removed, d.Added)
	if len(before) > 0 && len(u.all) > 0 {
		deltas[[2]*tables.Address{&before[0], &u.all[0]}] = d
	}
}

// mergeDelta is replaceAddresses for many addresses.
func mergeDelta(all []tables.Address, d AddressDelta) []tables.Address {
	next := slices.Concat(all, d.Added)
	next = slices.DeleteFunc(next, func(a tables.Address) bool { return has(a)(d.Removed) })
	return sortAddresses(next)
}
