package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/tables"
)

// Objects that stay as they were before an edit that is refused, and which commands tell
// of it: get and explain at the object (control.Status), check --live and /readyz of all
// of them, why of those that have to do with the connection. Metrics count them.

// refusedEdits are those of the source, and the Node's own objects if they are another
// Node's now.
func (l *live) refusedEdits() control.RefusedEdits {
	edits := l.store.RefusedEdits()
	unfit := l.unfit.Load()
	if unfit == nil || len(*unfit) == 0 {
		return edits
	}
	all := maps.Clone(*unfit)
	maps.Copy(all, edits)
	return all
}

// fits says why a snapshot cannot be this Node's, and notes it as a refused edit.
func (l *live) fits(now *control.Cluster) error {
	name, edits := l.config.NodeName, control.RefusedEdits{}
	note := func(kind control.Kind, at control.Source, err error) {
		edits[control.Key{Kind: kind, Name: name}] = fmt.Sprintf("%s: %v; until it is mended, no change of any object is taken over", at, err)
	}
	config, node := now.NodeConfig(name), now.Node(name)
	wrongConfig, wrongNode := l.config.fits(config), l.config.fitsNode(node)
	if wrongConfig != nil {
		at := control.Source{File: l.config.Manifests}
		if config != nil {
			at = config.Source
		}
		note(control.KindNodeConfig, at, wrongConfig)
	}
	if wrongNode != nil {
		note(control.KindNode, node.Source, wrongNode)
	}
	l.unfit.Store(&edits)
	return errors.Join(wrongConfig, wrongNode)
}

// refusedEditsText counts the refused edits and names the first; "" when there is none.
func (p *pipeline) refusedEditsText() string {
	if p.objects == nil {
		return ""
	}
	edits := p.objects.RefusedEdits()
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
var sharedKinds = []control.Kind{control.KindNodeConfig, control.KindTier, control.KindClusterGroup, control.KindGroup}

// noteEdits notes the refused edits of the objects that have to do with a connection: they
// decided on it, they apply to one of its ends, or they are one.
func (r teller) noteEdits(a *WhyAnswer) {
	edits := r.p.objects.RefusedEdits()
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
func (r teller) concerned() map[control.Key]bool {
	about := map[control.Key]bool{r.from.place.Object: true, r.to.place.Object: true}
	for _, o := range r.origins("") {
		about[o.Object] = true
	}
	if a, ok := r.endpointAddr(); ok {
		about[r.p.objects.PlaceOf(a.Addr()).Object] = true
	}
	for _, f := range []tables.Field{tables.TFEgressConjIDField, tables.TFIngressConjIDField} {
		if rule := r.p.objects.RuleByID(r.last(f)); rule != nil {
			about[rule.Key.Policy] = true
		}
	}
	if rule := r.denied(); rule != nil {
		about[rule.Key.Policy] = true
	}
	return about
}

// applies says whether a policy applies to a Pod that the packet comes from or goes to.
func (r teller) applies(policy control.Key) bool {
	for k := range r.concerned() {
		if k.Kind == control.KindPod && r.p.objects.AppliesTo(policy, control.Name{Namespace: k.Namespace, Name: k.Name}) {
			return true
		}
	}
	return false
}
