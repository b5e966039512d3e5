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

// Reconciling: after each snapshot of the cluster, this Node's switch gets the changes only.
//
//	snapshot → view → builders → wanted parts → ledger → bundle → switch
//	 (store)  (view)  (pods.go…)   (waiting)  (ledgerstep.go)    (Installer)
//
// A part that the switch refused waits, and its object has the reason. It is tried again with every
// change and by Retry. One failing object does not delay others: a bundle that fails is halved until
// the failing object is alone.
//
// Such halves are installed in a safe order (phases). A Pod's port closes before its policies go, and
// opens after all its policies are installed.

// builder makes the entries of one family of objects.
type builder interface {
	// build passes what the objects of a change want to w.
	build(c *change, w *wants)
	// settled reports that the switch has what a part wants; nil: nothing.
	settled(p ledger.Part, d *ledger.Desired)
}

// Reconciler makes one Node's switch follow the cluster's objects. Its methods may be called from
// several goroutines.
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
	seen       sightings         // has its own lock
	delays     delays
	edits      func() store.RefusedEdits // nil: there are none

	mu      sync.Mutex
	view    *view // nil: the Node is unknown
	ledger  *ledger.Ledger
	sides   ledger.NodeSides
	waiting map[ledger.Part]*ledger.Desired // not in the switch yet
	notes   map[cluster.Key]note            // states of objects from the builders
	failed  map[cluster.Key]note            // states of objects from the last attempt
	// missed: the last snapshot was skipped, so the keys of the next one are incomplete.
	missed bool
	// renamed: the switch needs new names. moved: the tables themselves changed, so a change
	// is installed whole or not at all.
	renamed, moved bool
	// owned has the owners of addresses in an earlier process; nil after the first bundle.
	owned map[ledger.AddressOwner]bool
}

// NewReconciler makes a Reconciler for the switch of a Node. The switch is empty, or in the state that
// Restore describes. clock returns the time, as time.Now does.
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
		r.multicast, // after the policies, which may keep Pods from groups
	}
	return r
}

// Update brings the switch to a new snapshot. keys are the objects that differ from the last one; nil:
// Update finds them. The error names what is not in the switch; Retry tries it again. A snapshot
// without this Node changes nothing.
func (r *Reconciler) Update(c *cluster.Cluster, keys []cluster.Key) error {
	return r.UpdateSince(c, keys, time.Time{})
}

// UpdateSince is Update for changes of which the source learned at a known time, for ObserveDelays. The
// zero time is not observed.
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
	r.collectWants(ch)
	r.delays.noteWaiting(r.waiting, since)
	return r.installWaiting()
}

// installWaiting installs all waiting parts. If that frees a mark, it also installs Egresses that lacked one.
func (r *Reconciler) installWaiting() error {
	err := r.install()
	if r.owned != nil && !r.ledger.Inherited() {
		r.forgetRestored()
	}
	if !r.egresses.freed {
		return err
	}
	r.egresses.freed = false
	r.collectWants(&change{was: r.view, now: r.view, kind: map[cluster.Kind]bool{cluster.KindEgress: true}})
	return r.install()
}

// collectWants collects from the builders what a change wants.
func (r *Reconciler) collectWants(ch *change) {
	w := &wants{parts: map[ledger.Part]*ledger.Desired{}, notes: map[cluster.Key]note{}}
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
			delete(r.delays.requestedAt, p)
			r.settled(p, d)
			continue
		}
		r.waiting[p] = d
	}
}

// settled reports to the builders that the switch has what a part wants.
func (r *Reconciler) settled(p ledger.Part, d *ledger.Desired) {
	r.sides.Settle(p, d)
	for _, b := range r.builders {
		b.settled(p, d)
	}
}

// Retry installs the waiting parts. The error names what still waits.
func (r *Reconciler) Retry() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.installWaiting()
}

// Waiting counts the parts of objects that are not in the switch.
func (r *Reconciler) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// phase is the order of installation if a change fails as a whole.
type phase uint8

const (
	tablesPhase phase = iota // everything needs the tables
	closePods                // Pods go: before their policies
	others
	peers      // shared addresses of rules come and change
	guardPods  // policies come
	openPods   // Pods come: only after all policies
	unguardPod // policies go: only after all Pods that go
	dropPeers  // shared addresses without a rule go
	phases
)

// phaseOf is the phase for a change of a part to d.
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

// needs returns the phases that must not have failed before a phase is tried.
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

// unit is the parts of one object that are installed together.
type unit struct {
	phase phase
	key   cluster.Key
	parts []ledger.Part
}

// install tries to install all waiting parts. Pods that go come first, so that nothing of theirs is left
// when another Pod gets their address.
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

// units groups the waiting parts, in the order of installation.
func (r *Reconciler) units() []unit {
	byKey := map[cluster.Key]*[phases][]ledger.Part{}
	for p, d := range r.waiting {
		if byKey[p.Object] == nil {
			byKey[p.Object] = &[phases][]ledger.Part{}
		}
		ph := phaseOf(p, d)
		byKey[p.Object][ph] = append(byKey[p.Object][ph], p)
	}
	keys := r.view.sortByPlace(slices.Collect(maps.Keys(byKey)))
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

// firstFailure counts the objects that are not installed and gives the reason of the first; nil if all
// are.
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

// Offline makes the pipeline of a Node from a snapshot, without a switch, as for dump-flows --manifests.
// The Reconciler explains the pipeline and has the states of objects. It returns an error if the
// snapshot lacks the Node.
func Offline(c *cluster.Cluster, node string) (*flow.Program, *Reconciler, error) {
	sw := ledger.NewMemorySwitch()
	r := NewReconciler(node, sw, time.Now)
	err := r.Update(c, nil)
	if r.view == nil {
		return nil, nil, err
	}
	return sw.Program(), r, nil
}

// NodeSide is what the objects in the switch want of the Node. The pointer is the same until something
// changes. The caller must not write it.
func (r *Reconciler) NodeSide() *ledger.NodeSide {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sides.Total()
}
