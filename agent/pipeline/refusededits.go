package pipeline

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Objects that stay as they were before an edit that is refused, and which commands tell
// of it: get and explain at the object (control.Status), check --live and /readyz of all
// of them, why of those that have to do with the connection. Metrics count them.

// RefusedEditsText counts the refused edits and names the first; "" when there is none.
func (p *Pipeline) RefusedEditsText() string {
	if p.Objects == nil {
		return ""
	}
	edits := p.Objects.RefusedEdits()
	if len(edits) == 0 {
		return ""
	}
	first, what := edits.Keys()[0], "1 object stays as it was: its edit is refused"
	if len(edits) > 1 {
		what = fmt.Sprintf("%d objects stay as they were: their edits are refused; the first", len(edits))
	}
	return fmt.Sprintf("%s: %s: %s", what, first, edits[first])
}

// sharedKinds are the kinds of which an edit may concern any connection.
var sharedKinds = []cluster.Kind{cluster.KindNodeConfig, cluster.KindTier, cluster.KindClusterGroup, cluster.KindGroup}

// noteEdits notes the refused edits of the objects that have to do with a connection: they
// decided on it, they apply to one of its ends, or they are one.
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
		note := fmt.Sprintf("%s is in force as it was, for its edit is refused: %s", objectText(k), edits[k])
		if !slices.Contains(a.Notes, note) {
			a.Notes = append(a.Notes, note)
		}
	}
}

// concerned are the two ends, and the objects behind the entries and rules that the packet
// met.
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
