package pipeline

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Objects that keep their state because an edit is refused. Commands report them:
//
//   - get and explain at the object (control.Status),
//   - check --live and /readyz for all objects,
//   - why for those that concern the connection.
//
// Metrics count them.

// RefusedEditsText counts the refused edits and names the first; "" if there are none.
func (p *Pipeline) RefusedEditsText() string {
	if p.Objects == nil {
		return ""
	}
	edits := p.Objects.RefusedEdits()
	if len(edits) == 0 {
		return ""
	}
	first, what := edits.Keys()[0], "the edit of 1 object is refused, its state before is in force"
	if len(edits) > 1 {
		what = fmt.Sprintf("the edits of %d objects are refused, their states before are in force; the first", len(edits))
	}
	return fmt.Sprintf("%s: %s: %s", what, first, edits[first])
}

// sharedKinds are the kinds whose edits may concern any connection.
var sharedKinds = []cluster.Kind{cluster.KindNodeConfig, cluster.KindTier, cluster.KindClusterGroup, cluster.KindGroup}

// noteEdits adds the refused edits that concern a connection: of objects that decided on it,
// apply to one of its ends, or are one.
func (r teller) noteEdits(a *api.WhyAnswer) {
	edits := r.p.Objects.RefusedEdits()
	if len(edits) == 0 {
		return
	}
	about := r.concerned()
	for _, k := range edits.Keys() {
		if !slices.Contains(sharedKinds, k.Kind) && !about[k] && !r.applies(k) {
			continue
		}
		note := fmt.Sprintf("the edit of %s is refused, its state before is in force: %s", objectText(k), edits[k])
		if !slices.Contains(a.Notes, note) {
			a.Notes = append(a.Notes, note)
		}
	}
}

// concerned are the two ends, and the objects behind the entries and rules that the packet met.
func (r teller) concerned() map[cluster.Key]bool {
	about := map[cluster.Key]bool{r.from.place.Object: true, r.to.place.Object: true}
	for _, o := range r.origins("") {
		about[o.Object] = true
	}
	if a, ok := r.endpointAddr(); ok {
		about[r.p.Objects.PlaceOf(a.Addr()).Object] = true
	}
	for _, f := range []tables.Field{tables.TFEgressConjIDField, tables.TFIngressConjIDField} {
		if rule := r.p.Objects.RuleByID(r.last(f)); rule != nil {
			about[rule.Key.Policy] = true
		}
	}
	if rule := r.denied(); rule != nil {
		about[rule.Key.Policy] = true
	}
	return about
}

// applies says whether a policy applies to a Pod that the packet comes from or goes to.
func (r teller) applies(policy cluster.Key) bool {
	for k := range r.concerned() {
		if k.Kind == cluster.KindPod && r.p.Objects.AppliesTo(policy, cluster.Name{Namespace: k.Namespace, Name: k.Name}) {
			return true
		}
	}
	return false
}
