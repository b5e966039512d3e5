package agent

import (
	"fmt"
	"io"
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
	fmt.Fprintln(t, "NODE\tADDRESSES\tPODCIDRS\tPODS")
	for _, n := range p.objects.Nodes() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\n", n.Name, words(n.Addresses), words(n.PodCIDRs), len(n.Pods))
	}
	return t.Flush()
}

func words[T fmt.Stringer](all []T) string {
	var texts []string
	for _, v := range all {
		texts = append(texts, v.String())
	}
	return list(texts, ",")
}

func (p *pipeline) nodeRows() ([]control.NodeRow, error) {
	if p.objects == nil {
		return nil, errNoObjects
	}
	return p.objects.Nodes(), nil
}
