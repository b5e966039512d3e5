package answer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/cluster"
)

// counters are the counters at one moment. Two answers give the rates between them.

func (p *Answers) counters() *api.Counters {
	st := p.Connections.Stats()
	return &api.Counters{
		AtNS: time.Duration(p.Clock()), Generation: p.Switch.Generation(), Pipeline: p.pipelineMap(), Ports: p.PortRecords(),
		Connections: api.ConnectionUse{Now: st.Entries, Max: st.Max},
	}
}

var nodeTable = objectTable[api.NodeRecord]{"NODE\tADDRESSES\tPODCIDRS\tPODS\tSTATE", func(n *api.NodeRecord) []string {
	return oneLine("%s\t%s\t%s\t%d\t%s", n.Name, words(n.Addresses), words(n.PodCIDRs), len(n.Pods), nodeState(n))
}}

func nodeState(r *api.NodeRecord) string {
	text := "-"
	switch {
	case r.Here:
		text = "this Node"
	case len(r.Silent) > 0:
		text = words(r.Silent) + " does not answer ARP or NDP"
	}
	if r.EditRefused != "" {
		text += ", edit refused: " + r.EditRefused
	}
	return text
}

func words[T fmt.Stringer](all []T) string {
	var texts []string
	for _, v := range all {
		texts = append(texts, v.String())
	}
	return list(texts)
}

func (p *Answers) nodeRows(query) (all []api.NodeRecord, err error) {
	if p.Objects == nil {
		return nil, pipeline.ErrNoObjects
	}
	all = []api.NodeRecord{}
	edits := p.Objects.RefusedEdits()
	for _, n := range p.Objects.Nodes() {
		r := api.NodeRecord{NodeRow: n}
		for _, kind := range []cluster.Kind{cluster.KindNodeConfig, cluster.KindNode} {
			r.EditRefused = cmp.Or(r.EditRefused, edits[cluster.Key{Kind: kind, Name: n.Name}])
		}
		for _, a := range p.SilentNodes() {
			if slices.Contains(n.Addresses, a) {
				r.Silent = append(r.Silent, a)
			}
		}
		all = append(all, r)
	}
	return all, nil
}
