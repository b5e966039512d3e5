package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// TestSubtract turns blocks with exceptions into the fewest prefixes.
func TestSubtract(t *testing.T) {
	for _, c := range []struct {
		name   string
		block  *cluster.IPBlock
		family tables.Family
		want   []string
	}{
		{"no exception", block("10.0.0.0/8"), tables.IPv4, []string{"10.0.0.0/8"}},
		{"half", block("10.0.0.0/8", "10.128.0.0/9"), tables.IPv4, []string{"10.0.0.0/9"}},
		{"one address", block("10.0.0.0/30", "10.0.0.1/32"), tables.IPv4, []string{"10.0.0.0/32", "10.0.0.2/31"}},
		{"two exceptions", block("10.0.0.0/29", "10.0.0.0/31", "10.0.0.6/31"), tables.IPv4, []string{"10.0.0.2/31", "10.0.0.4/31"}},
		{"everything", block("10.0.0.0/8", "10.0.0.0/8"), tables.IPv4, nil},
		{"an exception in another", block("10.0.0.0/8", "10.0.0.0/9", "10.1.0.0/16"), tables.IPv4, []string{"10.128.0.0/9"}},
		{"IPv6", block("fd00::/126", "fd00::3/128"), tables.IPv6, []string{"fd00::/127", "fd00::2/128"}},
		{"another family", block("fd00::/8"), tables.IPv4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := addressTexts(blockAddresses(*c.block, []tables.Family{c.family}))
			if !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestSubtractIsExact: each address of the block outside the exceptions is in one prefix, every
// other address in none.
func TestSubtractIsExact(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		b := block("192.0.2.0/24")
		for range rng.IntN(5) {
			bits := 25 + rng.IntN(8)
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(256))}), bits)
			b.Except = append(b.Except, p.Masked())
		}
		prefixes := subtract(b.CIDR, b.Except)
		for i := range 256 {
			ip := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
			holds := func(p netip.Prefix) bool { return p.Contains(ip) }
			n, want := 0, 1
			for _, p := range prefixes {
				if holds(p) {
					n++
				}
			}
			if slices.ContainsFunc(b.Except, holds) {
				want = 0
			}
			if n != want {
				t.Fatalf("%v without %v is %v: %s is in %d of them, want %d", b.CIDR, b.Except, prefixes, ip, n, want)
			}
		}
	}
}

// TestUnions: a union follows its sets, even if they share addresses.
func TestUnions(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	families := []tables.Family{tables.IPv4}
	pods := newPodSets(families)
	user := &policySpec{}
	sets := []*podSet{
		pods.acquireSet(podChoice{namespace: "a"}, user), pods.acquireSet(podChoice{pods: selector("app", "x")}, user),
	}
	fixed := blockAddresses(*block("10.0.0.3/32"), families)
	unions := addressSets{byKey: map[string]*AddressSet{}}
	u := unions.acquireSet(peersOfRules, sets, fixed, families)
	if unions.acquireSet(peersOfRules, sets, fixed, families) != u {
		t.Fatal("the same union is made twice")
	}
	for step := range 500 {
		deltas := addressDeltas{}
		before := u.Addresses()
		for range 1 + rng.IntN(2) {
			name := cluster.Key{Kind: cluster.KindPod, Namespace: pick(rng, []string{"a", "b"}), Name: fmt.Sprint(rng.IntN(4))}
			if rng.IntN(3) == 0 {
				pods.removePod(name)
				continue
			}
			ip := fmt.Sprintf("10.0.0.%d", rng.IntN(6))
			pods.setPod(name, member{pod: pod(name.Namespace, name.Name, ip, labels("app", pick(rng, []string{"x", "y"})))})
		}
		want := slices.Clone(fixed)
		for _, set := range sets {
			for _, m := range set.members {
				want = podAddresses(want, m.pod, families)
			}
		}
		d := u.update(families, deltas)
		got := u.Addresses()
		if !slices.EqualFunc(got, sortAddresses(want), sameAddress) {
			t.Fatalf("step %d: the union is %v, want %v", step, addressTexts(got), addressTexts(want))
		}
		plain := compareAddresses(before, got)
		if !slices.EqualFunc(d.Added, plain.Added, sameAddress) || !slices.EqualFunc(d.Removed, plain.Removed, sameAddress) {
			t.Fatalf("step %d: the change from %v to %v is %v", step, addressTexts(before), addressTexts(got), d)
		}
	}
	unions.releaseSet(u)
	unions.releaseSet(u)
	unions.sweep()
	if len(unions.byKey) != 0 {
		t.Error("a union without users is left")
	}
}
