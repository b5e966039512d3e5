package control

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Explaining: from an entry to the objects, rules and fields that want it, and
// back.

// Explanation is an entry of the switch and everything that wants it.
type Explanation struct {
	Entry   *flow.Entry
	Origins []Origin
}

// ExplainLine explains the entries that a line means: a line of a dump, or as
// much of one as names them. A line without priority means entries of any, one
// without actions is as good as one with. A learned entry comes from the
// Service in its cookie.
func (r *Reconciler) ExplainLine(line string) ([]Explanation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return nil, errNoView
	}
	want, err := parseForMatch(line, r.view.names)
	if err != nil {
		return nil, err
	}
	if ex := r.explain(want); ex != nil {
		return []Explanation{*ex}, nil
	}
	if want.Priority == flow.DefaultPriority {
		return r.anyPriority(want)
	}
	if ex := r.explainLearned(want); ex != nil {
		return []Explanation{*ex}, nil
	}
	return nil, errNoEntry
}

var (
	errNoView  = errors.New("this Node's pipeline is not there yet")
	errNoEntry = errors.New("no object wants an entry with this table, priority and match")
)

// parseForMatch reads a line for its table, priority, match and cookie.
func parseForMatch(line string, names *flow.Names) (*flow.Entry, error) {
	before, _, _ := strings.Cut(line, "actions=")
	return flow.ParseEntry(before+" actions=drop", names)
}

// explain explains the entry of an identity; nil when nobody wants it.
func (r *Reconciler) explain(e *flow.Entry) *Explanation {
	row := r.ledger.find(e)
	if row == nil || row.has == nil {
		return nil
	}
	return r.explainRow(row)
}

func (r *Reconciler) explainRow(row *row) *Explanation {
	ex := &Explanation{Entry: row.has}
	for _, c := range row.claims {
		if c.by.set == nil {
			ex.Origins = append(ex.Origins, r.origins(*c.Origin)...)
			continue
		}
		for _, shared := range c.by.set.clauses {
			ex.Origins = append(ex.Origins, *shared.Origin)
		}
	}
	slices.SortFunc(ex.Origins, func(a, b Origin) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Field, b.Field))
	})
	ex.Origins = slices.Compact(ex.Origins)
	return ex
}

// origins names the policies behind the isolation of a Pod; any other origin is
// its own.
func (r *Reconciler) origins(o Origin) []Origin {
	direction, ok := cutIsolation(o.Field)
	pod := r.view.Pods[o.Object]
	if !ok || pod == nil {
		return []Origin{o}
	}
	return append([]Origin{o}, r.isolating(pod, direction == "ingress")...)
}

// isolating are the NetworkPolicies that isolate a Pod for ingress, or for egress.
func (r *Reconciler) isolating(pod *Pod, ingress bool) (all []Origin) {
	for _, np := range r.view.NetworkPolicies {
		isolates := np.Ingress && ingress || np.Egress && !ingress
		if isolates && np.Key.Namespace == pod.Key.Namespace && np.Pods.Matches(pod.Labels) {
			all = append(all, Origin{Object: np.Key, Field: "spec.podSelector"})
		}
	}
	return all
}

// IsolatedBy are the NetworkPolicies that isolate a Pod for ingress, or for egress,
// by name.
func (r *Reconciler) IsolatedBy(n Name, ingress bool) []Origin {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.view.Pods[Key{KindPod, n.Namespace, n.Name}] == nil {
		return nil
	}
	all := r.isolating(r.view.Pods[Key{KindPod, n.Namespace, n.Name}], ingress)
	slices.SortFunc(all, func(a, b Origin) int { return a.Object.Compare(b.Object) })
	return all
}

// anyPriority explains all entries with the table and match of one.
func (r *Reconciler) anyPriority(want *flow.Entry) (all []Explanation, err error) {
	for row := range r.ledger.all() {
		if row.has != nil && row.has.Table == want.Table && row.has.Match == want.Match {
			all = append(all, *r.explainRow(row))
		}
	}
	if len(all) == 0 {
		return nil, errNoEntry
	}
	slices.SortFunc(all, func(a, b Explanation) int { return cmp.Compare(b.Entry.Priority, a.Entry.Priority) })
	return all, nil
}

// explainLearned explains an entry that a Service's entry learned: both have the
// group's id in the low half of their cookies.
func (r *Reconciler) explainLearned(e *flow.Entry) *Explanation {
	g := r.ledger.groups[uint32(e.Cookie)]
	if e.Cookie == 0 || g == nil || g.by == nil || g.by.part.Object.Kind != KindService {
		return nil
	}
	return &Explanation{e, []Origin{{Object: g.by.part.Object, Field: "spec.sessionAffinity"}}}
}

// ExplainGroup says what a group is for. The error says that there is no such
// group.
func (r *Reconciler) ExplainGroup(id uint32) (Origin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.ledger.groups[id]
	if g == nil || g.by == nil {
		return Origin{}, fmt.Errorf("there is no group %d", id)
	}
	for _, w := range g.by.desired.Groups {
		if w.Group.ID == id {
			return w.Origin, nil
		}
	}
	return Origin{Object: g.by.part.Object}, nil
}

// ExplainMeter says what a meter is for. The error says that there is no such meter.
func (r *Reconciler) ExplainMeter(id uint32) (Origin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.ledger.meters[id]
	if m == nil || m.by == nil {
		return Origin{}, fmt.Errorf("there is no meter %d", id)
	}
	return Origin{Object: m.by.part.Object}, nil
}

// NumbersOf are the groups and meters that an object wants, in order.
func (r *Reconciler) NumbersOf(k Key) (groups, meters []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.ledger.of[k] {
		for _, g := range c.desired.Groups {
			groups = append(groups, g.Group.ID)
		}
		for _, m := range c.desired.Meters {
			meters = append(meters, m.ID)
		}
	}
	slices.Sort(groups)
	slices.Sort(meters)
	return groups, meters
}

// EntriesOf are the entries of the switch that an object wants, by table and
// falling priority, each with everything that wants it. Those of a NetworkPolicy are
// also what drops the rest for Pods that it isolates, which is the Pods' own.
func (r *Reconciler) EntriesOf(k Key) []Explanation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Explanation
	rows := r.rowsOf(k)
	r.addIsolating(rows, k)
	for row := range rows {
		all = append(all, *r.explainRow(row))
	}
	slices.SortFunc(all, func(a, b Explanation) int {
		if a.Entry.Table != b.Entry.Table || a.Entry.Priority != b.Entry.Priority {
			return cmp.Or(cmp.Compare(a.Entry.Table, b.Entry.Table), cmp.Compare(b.Entry.Priority, a.Entry.Priority))
		}
		return cmp.Compare(a.Entry.Match.Text(nil), b.Entry.Match.Text(nil))
	})
	return all
}

// rowsOf are the rows of entries in the switch that an object wants, each once.
func (r *Reconciler) rowsOf(k Key) map[*row]bool {
	rows := map[*row]bool{}
	add := func(entries []Wanted) {
		for _, w := range entries {
			if row := r.ledger.find(w.Entry); row != nil && row.has != nil {
				rows[row] = true
			}
		}
	}
	for _, c := range r.ledger.of[k] {
		add(c.desired.Entries)
		for _, clause := range c.desired.Clauses {
			if by := r.ledger.desired(clause.By); by != nil {
				add(by.Entries)
			}
		}
	}
	return rows
}

// addIsolating adds the rows of entries that are there since a NetworkPolicy isolates a Pod.
func (r *Reconciler) addIsolating(rows map[*row]bool, k Key) {
	if k.Kind != KindNetworkPolicy || r.view == nil {
		return
	}
	for row := range r.ledger.all() {
		if row.has != nil && slices.ContainsFunc(row.claims, func(c claim) bool {
			return c.by.set == nil && slices.ContainsFunc(r.origins(*c.Origin), func(o Origin) bool { return o.Object == k })
		}) {
			rows[row] = true
		}
	}
}

// all are all rows.
func (l *ledger) all() func(func(*row) bool) {
	return func(yield func(*row) bool) {
		for _, h := range slices.Sorted(maps.Keys(l.rows)) {
			for r := l.rows[h]; r != nil; r = r.next {
				if !yield(r) {
					return
				}
			}
		}
	}
}
