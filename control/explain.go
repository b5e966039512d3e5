package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Explaining maps an entry to the objects, rules and fields that want it, and back.

// Explanation is an entry of the switch with everything that wants it.
type Explanation struct {
	Entry   *flow.Entry
	Origins []ledger.Origin
}

// ExplainLine explains the entries that a line matches: a line of a dump, or the part that
// identifies entries. A line without priority matches entries of any priority. Actions are ignored.
// A learned entry is explained by the Service in its cookie.
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
	return parse.Entry(before+" actions=drop", names)
}

// explain explains the entry of an identity; nil if no object wants it.
func (r *Reconciler) explain(e *flow.Entry) *Explanation {
	row := r.ledger.Installed(e)
	if row == nil {
		return nil
	}
	return r.explainRow(row)
}

func (r *Reconciler) explainRow(row *ledger.Row) *Explanation {
	ex := &Explanation{Entry: row.Entry()}
	for o := range row.Origins() {
		ex.Origins = append(ex.Origins, r.origins(o)...)
	}
	slices.SortFunc(ex.Origins, func(a, b ledger.Origin) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Field, b.Field))
	})
	ex.Origins = slices.Compact(ex.Origins)
	return ex
}

// origins adds to the isolation of a Pod the policies behind it. It returns other origins as they
// are.
func (r *Reconciler) origins(o ledger.Origin) []ledger.Origin {
	direction, ok := cutIsolation(o.Field)
	pod := r.view.Pods[o.Object]
	if !ok || pod == nil {
		return []ledger.Origin{o}
	}
	return append([]ledger.Origin{o}, r.isolating(pod, direction == "ingress")...)
}

// isolating returns the NetworkPolicies that isolate a Pod for ingress, or for egress.
func (r *Reconciler) isolating(pod *cluster.Pod, ingress bool) (all []ledger.Origin) {
	for _, np := range r.view.NetworkPolicies {
		isolates := np.Ingress && ingress || np.Egress && !ingress
		if isolates && np.Key.Namespace == pod.Key.Namespace && np.Pods.Matches(pod.Labels) {
			all = append(all, ledger.Origin{Object: np.Key, Field: "spec.podSelector"})
		}
	}
	return all
}

// IsolatedBy returns the NetworkPolicies that isolate a Pod for ingress, or for egress, by name.
func (r *Reconciler) IsolatedBy(n cluster.Name, ingress bool) []ledger.Origin {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.view.Pods[cluster.Key{Kind: cluster.KindPod, Namespace: n.Namespace, Name: n.Name}] == nil {
		return nil
	}
	all := r.isolating(r.view.Pods[cluster.Key{Kind: cluster.KindPod, Namespace: n.Namespace, Name: n.Name}], ingress)
	slices.SortFunc(all, func(a, b ledger.Origin) int { return a.Object.Compare(b.Object) })
	return all
}

// anyPriority explains all entries with the table and match of one.
func (r *Reconciler) anyPriority(want *flow.Entry) (all []Explanation, err error) {
	for row := range r.ledger.All() {
		if e := row.Entry(); e.Table == want.Table && e.Match == want.Match {
			all = append(all, *r.explainRow(row))
		}
	}
	if len(all) == 0 {
		return nil, errNoEntry
	}
	slices.SortFunc(all, func(a, b Explanation) int { return cmp.Compare(b.Entry.Priority, a.Entry.Priority) })
	return all, nil
}

// explainLearned explains an entry that an entry of a Service learned. Both have the group's id in
// the low half of their cookies.
func (r *Reconciler) explainLearned(e *flow.Entry) *Explanation {
	by, d := r.ledger.GroupOwner(uint32(e.Cookie))
	if e.Cookie == 0 || d == nil || by.Object.Kind != cluster.KindService {
		return nil
	}
	return &Explanation{e, []ledger.Origin{{Object: by.Object, Field: "spec.sessionAffinity"}}}
}

// ExplainGroup names the object and field that want a group. It returns an error if no object does.
func (r *Reconciler) ExplainGroup(id uint32) (ledger.Origin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by, d := r.ledger.GroupOwner(id)
	if d == nil {
		return ledger.Origin{}, fmt.Errorf("there is no group %d", id)
	}
	for _, w := range d.Groups {
		if w.Group.ID == id {
			return w.Origin, nil
		}
	}
	return ledger.Origin{Object: by.Object}, nil
}

// ExplainMeter names the object that wants a meter. It returns an error if no object does.
func (r *Reconciler) ExplainMeter(id uint32) (ledger.Origin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by, d := r.ledger.MeterOwner(id)
	if d == nil {
		return ledger.Origin{}, fmt.Errorf("there is no meter %d", id)
	}
	return ledger.Origin{Object: by.Object}, nil
}

// NumbersOf returns the groups and meters that an object wants, in order.
func (r *Reconciler) NumbersOf(k cluster.Key) (groups, meters []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.ledger.PartsOf(k) {
		for _, g := range d.Groups {
			groups = append(groups, g.Group.ID)
		}
		for _, m := range d.Meters {
			meters = append(meters, m.ID)
		}
	}
	slices.Sort(groups)
	slices.Sort(meters)
	return groups, meters
}

// EntriesOf returns the entries of the switch that an object wants, by table and falling priority,
// each with everything that wants it. Those of a NetworkPolicy include the entries that isolate
// Pods for it, although these belong to the Pods.
func (r *Reconciler) EntriesOf(k cluster.Key) []Explanation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Explanation
	rows := r.ledger.RowsOf(k)
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

// addIsolating adds the rows of entries that isolate a Pod for a NetworkPolicy.
func (r *Reconciler) addIsolating(rows map[*ledger.Row]bool, k cluster.Key) {
	if k.Kind != cluster.KindNetworkPolicy || r.view == nil {
		return
	}
	for row := range r.ledger.All() {
		for o := range row.Origins() {
			if slices.ContainsFunc(r.origins(o), func(o ledger.Origin) bool { return o.Object == k }) {
				rows[row] = true
			}
		}
	}
}
