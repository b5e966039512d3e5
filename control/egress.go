package control

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/numbers"
	"github.com/antrail/antrail/tables"
)

// Egresses: the traffic of some Pods leaves the cluster from one address, which one Node holds.
//
// On that Node the address has a packet mark. The Node's own side translates packets with the
// mark. Other Nodes send the Pods' traffic to that Node through the tunnel.
//
// If several Egresses choose a Pod, the first by name applies, in any order of arrival.
//
// An address has one bandwidth. The first Egress by name that limits an address has its meter.
// Another Egress may ask for the same bandwidth; any other bandwidth is refused.

// egressBuilder makes the entries of Egresses.
type egressBuilder struct {
	marks *numbers.Allocator[netip.Addr]
	// wanted and has are the addresses of this Node that each Egress wants, and that it has
	// in the switch.
	wanted, has map[cluster.Key]netip.Addr
	// short: an Egress found no mark. freed: since then, a mark became free.
	short, freed bool
}

// maxMark is the highest packet mark of an Egress, of 8 bits.
const maxMark = 255

func newMarks() *numbers.Allocator[netip.Addr] { return numbers.NewAllocator[netip.Addr](1, maxMark) }

func newEgressBuilder() *egressBuilder {
	return &egressBuilder{
		marks: newMarks(), wanted: map[cluster.Key]netip.Addr{}, has: map[cluster.Key]netip.Addr{},
	}
}

func (b *egressBuilder) build(c *change, w *wants) {
	if !c.all && !c.podsMoved() && !c.touches(cluster.KindEgress, cluster.KindExternalIPPool, cluster.KindNamespace, cluster.KindNode) {
		return
	}
	for _, k := range c.keys {
		if k.Kind == cluster.KindEgress && c.now.Egresses[k] == nil {
			delete(b.wanted, k)
			w.want(ledger.Part{Object: k}, nil)
		}
	}
	b.short = false
	free := c.now.connected()
	places := placeEgresses(c.now)
	limiters := c.now.limiters(places)
	for _, k := range sortedKeys(c.now.Egresses) {
		var chosen []*cluster.Pod
		chosen, free = c.now.takeChosen(c.now.Egresses[k].AppliedTo, free)
		b.egress(c.now, k, egressUse{places[k], chosen, limiters[places[k].addr]}, w)
	}
}

// limiters maps addresses of this Node to the Egresses that limit them.
func (v *view) limiters(places map[cluster.Key]egressPlace) map[netip.Addr]cluster.Key {
	limiters := map[netip.Addr]cluster.Key{}
	for _, k := range sortedKeys(v.Egresses) {
		at := places[k]
		if _, taken := limiters[at.addr]; !taken && at.node == v.node && v.Egresses[k].Bandwidth != (cluster.Bandwidth{}) {
			limiters[at.addr] = k
		}
	}
	return limiters
}

// takeChosen splits free into the Pods that a set chooses and the rest.
func (v *view) takeChosen(set cluster.PodSet, free []*cluster.Pod) (chosen, rest []*cluster.Pod) {
	for _, p := range free {
		if v.SelectsPod(set, p) {
			chosen = append(chosen, p)
		} else {
			rest = append(rest, p)
		}
	}
	return chosen, rest
}

// egressUse is the place of an Egress' address, the Pods of this Node that use it, and the Egress
// that limits it; zero: none.
type egressUse struct {
	place   egressPlace
	pods    []*cluster.Pod
	limiter cluster.Key
}

// egress makes the entries of one Egress.
func (b *egressBuilder) egress(v *view, k cluster.Key, use egressUse, w *wants) {
	part, at := ledger.Part{Object: k}, use.place
	delete(b.wanted, k)
	switch {
	case !v.config.Features.Egress:
		w.want(part, nil)
		w.ignore(k, "the feature Egress is off")
		return
	case at.lacks != "":
		w.want(part, nil)
		w.hold(k, "%s", at.lacks)
		return
	case at.node != v.node && !v.config.Encap.HasTunnel():
		w.want(part, nil)
		w.hold(k, "the address is on another Node, and there is no tunnel to it")
		return
	}
	if fault := v.bandwidthFault(k, use); fault != "" {
		w.want(part, nil)
		w.refuse(k, "spec.bandwidth: %s", fault)
		return
	}
	ip := tables.EgressIP{Addr: at.addr}
	d := &ledger.Desired{}
	if at.node == v.node {
		mark, ok := b.marks.Assign(at.addr)
		if !ok {
			b.short = true
			w.refuse(k, "spec.egressIP: all %d marks of addresses are taken on this Node", maxMark)
			return
		}
		b.wanted[k] = at.addr
		ip.Mark = uint8(mark)
		d.AddEntries(ledger.Origin{Object: k, Field: "spec.egressIP"}, v.pipeline.EgressAddress(ip)...)
		d.Node.Egresses = []ledger.EgressMark{{Addr: at.addr, Mark: ip.Mark}}
		if use.limiter == k {
			v.addMeter(d, k, ip.Mark)
		}
	} else if len(use.pods) > 0 {
		d.Node.FarEgresses = []netip.Addr{at.addr}
	}
	for _, p := range use.pods {
		pod, _ := v.localPod(p)
		d.AddEntries(ledger.Origin{Object: k, Field: "spec.appliedTo"}, v.pipeline.PodEgress(pod.Port, ip)...)
	}
	w.fine(k)
	w.want(part, d)
}

// bandwidthFault is the reason why an Egress of this Node cannot have its bandwidth; "" if it can.
func (v *view) bandwidthFault(k cluster.Key, use egressUse) string {
	wants := v.Egresses[k].Bandwidth
	switch {
	case use.place.node != v.node || wants == cluster.Bandwidth{}:
		return ""
	case !v.config.Features.EgressQoS:
		return "needs features: {EgressTrafficShaping: true}"
	case wants != v.Egresses[use.limiter].Bandwidth:
		return fmt.Sprintf("%s has another bandwidth for the address %s; an address has one", use.limiter, use.place.addr)
	}
	return ""
}

// addMeter adds the meter of an Egress' address.
func (v *view) addMeter(d *ledger.Desired, k cluster.Key, mark uint8) {
	b := v.Egresses[k].Bandwidth
	entries, meters := v.pipeline.EgressLimit(tables.EgressLimit{Mark: mark, Rate: b.Rate, Burst: b.Burst})
	d.AddEntries(ledger.Origin{Object: k, Field: "spec.bandwidth"}, entries...)
	d.Meters = append(d.Meters, meters...)
}

// settled frees the marks of addresses that no Egress wants or has.
func (b *egressBuilder) settled(p ledger.Part, d *ledger.Desired) {
	old := b.has[p.Object]
	delete(b.has, p.Object)
	if now, ok := b.wanted[p.Object]; ok && d != nil {
		b.has[p.Object] = now
	}
	if old.IsValid() && !b.uses(old) {
		b.marks.Free(old)
		b.freed = b.short
	}
}

func (b *egressBuilder) uses(a netip.Addr) bool {
	for _, m := range []map[cluster.Key]netip.Addr{b.wanted, b.has} {
		for _, x := range m {
			if x == a {
				return true
			}
		}
	}
	return false
}

// egressPlace is an Egress' address and its Node, or what is missing.
type egressPlace struct {
	addr  netip.Addr
	node  string
	lacks string
}

// placeEgresses finds the address and Node of every Egress. Usually the Egress' status has both. In
// a set of manifests there is no status. Then every Node computes the same from the pools:
//
//   - In the order of names, each Egress gets the lowest address that no other has.
//   - An address of a pool is on the Node of the pool with the highest hash of name and address
//     (rendezvous hashing). So few addresses move if a Node goes.
//   - An address of a Node is on that Node.
func placeEgresses(v *view) map[cluster.Key]egressPlace {
	taken := map[netip.Addr]bool{}
	for _, e := range v.Egresses {
		if e.Addr.IsValid() {
			taken[e.Addr] = true
		}
	}
	places := map[cluster.Key]egressPlace{}
	for _, k := range sortedKeys(v.Egresses) {
		places[k] = v.placeEgress(v.Egresses[k], taken)
	}
	return places
}

// placeEgress places one Egress. It adds the address that it assigns to taken.
func (v *view) placeEgress(e *cluster.Egress, taken map[netip.Addr]bool) egressPlace {
	pool := v.poolOf(e)
	at := egressPlace{addr: e.Addr, node: e.Node}
	if !at.addr.IsValid() && pool != nil {
		at.addr = lowestFree(pool, taken)
		taken[at.addr] = true
	}
	if at.addr.IsValid() && at.node == "" {
		at.node = v.holderOf(at.addr, pool)
	}
	switch {
	case !at.addr.IsValid():
		at.lacks = "the Egress has no address yet"
	case at.node == "":
		at.lacks = "no Node holds the address " + at.addr.String() + " yet"
	}
	return at
}

// poolOf is the first existing pool of an Egress.
func (v *view) poolOf(e *cluster.Egress) *cluster.ExternalIPPool {
	for _, name := range e.Pools {
		if p := v.ExternalIPPools[cluster.Key{Kind: cluster.KindExternalIPPool, Name: name}]; p != nil {
			return p
		}
	}
	return nil
}

// lowestFree is the first address of a pool that is not taken; invalid if there is none.
func lowestFree(p *cluster.ExternalIPPool, taken map[netip.Addr]bool) netip.Addr {
	for _, r := range p.Ranges {
		for a := r.First; a.IsValid() && a.Compare(r.Last) <= 0; a = a.Next() {
			if !taken[a] {
				return a
			}
		}
	}
	return netip.Addr{}
}

// holderOf is the Node of an address without a status.
func (v *view) holderOf(a netip.Addr, pool *cluster.ExternalIPPool) string {
	best, highest := "", uint64(0)
	for _, k := range sortedKeys(v.Nodes) {
		n := v.Nodes[k]
		if slices.Contains(n.Addresses, a) {
			return k.Name
		}
		if pool == nil || !pool.Nodes.Matches(n.Labels) {
			continue
		}
		if h := placeHash(a, k.Name); best == "" || h > highest {
			best, highest = k.Name, h
		}
	}
	return best
}

func placeHash(a netip.Addr, node string) uint64 {
	h := fnv.New64a()
	h.Write(a.AsSlice())
	h.Write([]byte(node))
	return h.Sum64()
}
