package config

import (
	"fmt"
	"net/netip"
	"slices"
)

// faults collects the errors of a configuration.
type faults []error

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// checkFamilies checks that there is one address with prefix length, or one of each family.
func (f *faults) checkFamilies(what string, all []netip.Prefix) {
	f.check(len(all) > 0, "%s: missing", what)
	for i, p := range all {
		f.check(p.IsValid() && !p.Addr().Is4In6(), "%s[%d]: %v is not an IPv4 or IPv6 address with prefix length", what, i, p)
		f.check(!slices.ContainsFunc(all[:i], SameFamily(p)), "%s[%d]: %v is the second of its family", what, i, p)
	}
}

// SameFamily returns a predicate: whether a prefix is of the IP family of a.
func SameFamily(a netip.Prefix) func(netip.Prefix) bool {
	return func(b netip.Prefix) bool { return a.Addr().Is4() == b.Addr().Is4() }
}

// isNodeAddress says whether an address can be a Node's on the underlay.
func isNodeAddress(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.Is4In6() && a.Zone() == ""
}

// checkNodeAddress checks the address of a Node under a key.
func (f *faults) checkNodeAddress(key string, a netip.Addr) {
	f.check(a.IsValid(), "%s: missing", key)
	f.check(!a.IsValid() || isNodeAddress(a), "%s: %v cannot be the address of a Node", key, a)
}

// claim records the owner of a key, and adds a fault if the key has an owner already.
func claim[K comparable](f *faults, taken map[K]string, key K, owner, what string) {
	f.check(taken[key] == "", "%s.%s: %v is taken by %s", owner, what, key, taken[key])
	taken[key] = owner
}

// orDefault sets a key that is not in the file to its default.
func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
