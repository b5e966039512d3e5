package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// Reconciling: from each snapshot of the cluster, this Node's switch gets what
// changed, and nothing else.
//
//	snapshot → view → builders → wanted parts → ledger → bundle → switch
//	 (store)  (view)  (pods.go…)   (waiting)   (step.go)        (Installer)
//
// A part that the switch did not take waits, and is tried again with every
// change and by Retry; its object says why. One object in the way does not keep
// others waiting: a bundle that fails is halved until what fails is alone.
// What can come apart like this comes in an order of safety (phases): a Pod's
// port is closed before anything that guards it goes, and is opened after all
// that guards it is in.

// builder makes what one family of objects wants.
type builder interface {
	// build looks at what a change touches and tells w what it wants now.
	build(c *change, w *wants)
	// settled says that the switch has what a part wants: nil, nothing.
	settled(p ledger.Part, d *ledger.Desired)
}

// Reconciler keeps one Node's switch in step with the cluster's objects. Its
// methods may be called from several goroutines.
type Reconciler struct {
	node       string
	to         ledger.Installer
	clock      func() time.Time
	builders   []builder
	services   *serviceBuilder   // one of builders
	egresses   *egressBuilder    // likewise
	policies   *policyBuilder    // likewise
	multicast  *multicastBuilder // likewise
	traceflows *traceflowBuilder // likewise
	seen       sightings         // has a lock of its own
	delays     delays
	edits      func() store.RefusedEdits // nil: none is ever refused

	mu      sync.Mutex
	view    *view // nil: the Node is not known yet
	ledger  *ledger.Ledger
	sides   ledger.NodeSides
	waiting map[ledger.Part]*ledger.Desired // not in the switch yet
	notes   map[cluster.Key]note            // what builders say of objects
	failed  map[cluster.Key]note            // what the last attempt said of objects
	// missed: a snapshot was left out, the keys of the next are not enough.
	missed bool
	// renamed: the switch is to be told names; moved: the tables themselves
	// changed, so everything or nothing is installed.
	renamed, moved bool
	// owned is who had which address in a process before; nil after the first
	// Update.
	owned map[ledger.AddressOwner]bool
}

// NewReconciler makes a Reconciler for the switch of a Node. The switch has to
// be empty, or to have what Restore says. clock tells the time, as time.Now does.
func NewReconciler(node string, to ledger.Installer, clock func() time.Time) *Reconciler {
	services, egresses, traceflows := newServiceBuilder(), newEgressBuilder(), &traceflowBuilder{}
	r := &Reconciler{
		node: node, to: to, clock: clock, services: services, egresses: egresses, traceflows: traceflows,
		ledger: ledger.New(), sides: ledger.NewNodeSides(),
		waiting: map[ledger.Part]*ledger.Desired{}, notes: map[cluster.Key]note{}, failed: map[cluster.Key]note{},
		seen: sightings{rules: map[uint32]*policy.RealisedRule{}},
	}
	r.policies = newPolicyBuilder(services.groupsOf, &r.seen, clock)
	r.multicast = newMulticastBuilder(r.policies)
	r.builders = []builder{
		nodeBuilder{newPodRanges()}, podBuilder{}, entityBuilder{}, services, egresses, trafficControlBuilder{}, traceflows,
		r.policies,  // after the Services, whose groups policies name
		r.multicast, // after the policies, which say who may join
	}
	return r
}

// Update brings the switch to a new snapshot. keys are the objects that differ
// from the last one; nil: that is to be found out. The error says what of it is
// not in the switch; Retry tries that again. A snapshot without this Node
// changes nothing.
func (r *Reconciler) Update(c *cluster.Cluster, keys []cluster.Key) error {
	return r.UpdateSince(c, keys, time.Time{})
}

// UpdateSince is Update for changes of which a source learned at a known time, so
// that ObserveDelays tells how long each took; zero: it tells nothing.
func (r *Reconciler) UpdateSince(c *cluster.Cluster, keys []cluster.Key, since time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed {
		keys = nil
	}
	next, err := newView(c, r.node, r.view, keys)
	r.missed = err != nil
	if err != nil {
		return err
	}
	ch := newChange(r.view, next, keys)
	r.moved = r.moved || r.view != nil && ch.all
	r.renamed = r.renamed || r.view == nil || r.view.names != next.names
	r.view = next
	r.ledger.NameTables(next.names)
	r.seen.setPods(next.ports)
	r.collect(ch)
	r.delays.noteWaiting(r.waiting, since)
	return r.bring()
}

// bring installs what is waiting, and Egresses that were short of a mark if one
// became free by it.
func (r *Reconciler) bring() error {
	err := r.install()
	if r.owned != nil && !r.ledger.Inherited() {
		r.forgetRestored()
	}
	if !r.egresses.freed {
		return err
	}
	r.egresses.freed = false
	r.collect(&change{was: r.view, now: r.view, kind: map[cluster.Kind]bool{cluster.KindEgress: true}})
	return r.install()
}

// collect asks the builders what they want now.
func (r *Reconciler) collect(ch *change) {
	w := newWants()
	for _, k := range ch.keys {
		delete(r.notes, k)
	}
	for _, b := range r.builders {
		b.build(ch, w)
	}
	maps.Copy(r.notes, w.notes)
	for _, p := range w.order {
		d := w.parts[p]
		if ledger.Same(d, r.ledger.Desired(p)) {
			delete(r.waiting, p)
			r.delays.forget(p)
			r.settled(p, d)
			continue
		}
		r.waiting[p] = d
	}
}

// settled tells the builders that the switch has what a part wants.
func (r *Reconciler) settled(p ledger.Part, d *ledger.Desired) {
	r.sides.Settle(p, d)
	for _, b := range r.builders {
		b.settled(p, d)
	}
}

// Retry installs what is waiting. The error says what still is.
func (r *Reconciler) Retry() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bring()
}

// Waiting counts the parts of objects that are not in the switch.
func (r *Reconciler) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// phase orders what is installed when it cannot go in as one.
type phase uint8

const (
	tablesPhase phase = iota // without them, nothing else
	closePods                // Pods go: before what guards them
	others
	peers      // who policies speak of comes and goes
	guardPods  // policies come
	openPods   // Pods come: only when all policies are in
	unguardPod // policies go: only when all Pods that go are gone
	dropPeers  // addresses of which no policy speaks go
	phases
)

// phaseOf is the phase of a change of a part to d.
func phaseOf(p ledger.Part, d *ledger.Desired) phase {
	switch p.Object.Kind {
	case cluster.KindNodeConfig:
		return tablesPhase
	case cluster.KindPod, cluster.KindExternalEntity:
		if p.Name != "" { // isolation
			break
		}
		if d == nil {
			return closePods
		}
		return openPods
	case kindPeers:
		if d == nil {
			return dropPeers
		}
		return peers
	case cluster.KindNetworkPolicy, cluster.KindClusterNetworkPolicy, cluster.KindAntreaNetworkPolicy:
	default:
		return others
	}
	if d == nil {
		return unguardPod
	}
	return guardPods
}

// needs says which phase must not have failed for another to be tried.
func (p phase) needs() []phase {
	switch p {
	case tablesPhase:
		return nil
	case openPods:
		return []phase{tablesPhase, peers, guardPods}
	case guardPods:
		return []phase{tablesPhase, peers}
	case dropPeers:
		return []phase{tablesPhase, unguardPod}
	case unguardPod:
		return []phase{tablesPhase, closePods}
	}
	return []phase{tablesPhase}
}

// unit is what of one object is installed together.
type unit struct {
	phase phase
	key   cluster.Key
	parts []ledger.Part
}

// install tries to install all that is waiting: first Pods that go, so that
// nothing of theirs is left when somebody else gets their address.
func (r *Reconciler) install() error {
	clear(r.failed)
	if len(r.waiting) == 0 && !r.renamed {
		return nil
	}
	units := r.units()
	a := attempt{Reconciler: r}
	if r.moved || r.ledger.Inherited() {
		a.run(units)
	} else {
		first := slices.IndexFunc(units, func(u unit) bool { return u.phase > closePods })
		if first < 0 {
			first = len(units)
		}
		a.run(units[:first])
		a.run(units[first:])
	}
	if r.renamed && !r.moved {
		a.run(nil)
	}
	return r.firstFailure()
}

// units groups what is waiting, in the order in which it is to be installed.
func (r *Reconciler) units() []unit {
	byKey := map[cluster.Key]*[phases][]ledger.Part{}
	for p, d := range r.waiting {
		if byKey[p.Object] == nil {
			byKey[p.Object] = &[phases][]ledger.Part{}
		}
		ph := phaseOf(p, d)
		byKey[p.Object][ph] = append(byKey[p.Object][ph], p)
	}
	keys := r.view.arrival(slices.Collect(maps.Keys(byKey)))
	var units []unit
	for ph := range phases {
		for _, k := range keys {
			if parts := byKey[k][ph]; len(parts) > 0 {
				slices.SortFunc(parts, func(a, b ledger.Part) int { return cmp.Compare(a.Name, b.Name) })
				units = append(units, unit{ph, k, parts})
			}
		}
	}
	return units
}

// firstFailure is an error that counts the objects that are not installed and
// says why the first is not; nil when all are.
func (r *Reconciler) firstFailure() error {
	if len(r.failed) == 0 {
		return nil
	}
	first := sortedKeys(r.failed)[0]
	n := r.failed[first]
	err := fmt.Errorf("%s is %s: %s", first, n.state, n.reason)
	if len(r.failed) > 1 {
		err = fmt.Errorf("%w (and %d more objects)", err, len(r.failed)-1)
	}
	return err
}

// Offline makes the pipeline of a Node from a snapshot, without a switch: what
// dump-flows --manifests prints. The Reconciler explains it and knows what of
// the objects is not in it. The error says that the snapshot lacks the Node.
func Offline(c *cluster.Cluster, node string) (*flow.Program, *Reconciler, error) {
	sw := ledger.NewMemorySwitch()
	r := NewReconciler(node, sw, time.Now)
	err := r.Update(c, nil)
	if r.view == nil {
		return nil, nil, err
	}
	return sw.Program(), r, nil
}

// NodeSide is what the objects in the switch ask of the Node now. The same
// pointer comes as long as nothing changes; it is only to be read.
func (r *Reconciler) NodeSide() *ledger.NodeSide {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sides.Total()
}
