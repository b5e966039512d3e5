package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/diagram"
)

// What changes as packets pass, looked at in one go: who asks twice knows the
// rates in between.

// Counters are those of one moment.
type Counters struct {
	// AtNS is that moment, of a clock that never goes back.
	AtNS time.Duration `json:"atNS"`
	// Generation changes with the entries of the pipeline.
	Generation  uint64        `json:"generation"`
	Pipeline    *diagram.Map  `json:"pipeline"`
	Ports       []PortRecord  `json:"ports"`
	Connections ConnectionUse `json:"connections"`
}

// ConnectionUse is how full the connection table is.
type ConnectionUse struct {
	Now int `json:"now"`
	Max int `json:"max"`
}

func (p *pipeline) counters() *Counters {
	st := p.ct.Stats()
	return &Counters{
		AtNS: time.Duration(p.clock()), Generation: p.sw.Generation(), Pipeline: p.pipelineMap(), Ports: p.portRecords(),
		Connections: ConnectionUse{st.Entries, st.Max},
	}
}

func (p *pipeline) writeNodes(w io.Writer, _ query) error {
	if p.objects == nil {
		return errNoObjects
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tADDRESSES\tPODCIDRS\tPODS\tSTATE")
	rows, err := p.nodeRows()
	for _, n := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", n.Name, words(n.Addresses), words(n.PodCIDRs), len(n.Pods), n.state())
	}
	return errors.Join(err, t.Flush())
}

// NodeRecord is a Node as this one sees it.
type NodeRecord struct {
	control.NodeRow
	// Silent are its addresses that do not answer ARP or NDP, though packets go there.
	Silent []netip.Addr `json:"silent,omitempty"`
	// EditRefused is as in control.Status, of the Node or its NodeConfig.
	EditRefused string `json:"editRefused,omitempty"`
}

func (r *NodeRecord) state() string {
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
	return list(texts, ",")
}

func (p *pipeline) nodeRows() (all []NodeRecord, err error) {
	if p.objects == nil {
		return nil, errNoObjects
	}
	all = []NodeRecord{}
	edits := p.objects.RefusedEdits()
	for _, n := range p.objects.Nodes() {
		r := NodeRecord{NodeRow: n}
		for _, kind := range []control.Kind{control.KindNodeConfig, control.KindNode} {
			r.EditRefused = cmp.Or(r.EditRefused, edits[control.Key{Kind: kind, Name: n.Name}])
		}
		for _, a := range p.silentNodes() {
			if slices.Contains(n.Addresses, a) {
				r.Silent = append(r.Silent, a)
			}
		}
		all = append(all, r)
	}
	return all, nil
}
