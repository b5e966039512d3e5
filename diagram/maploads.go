package diagram

import (
	"fmt"
	"time"
)

// Load is the traffic of a map, in packets or in packets a second. Tables and edges are in the
// map's order.
type Load struct {
	PerSecond bool
	Tables    []float64
	Drops     []float64
	Edges     []float64
}

// Total is the sum of all packets so far.
func (m *Map) Total() *Load {
	l := &Load{Tables: make([]float64, len(m.Tables)), Drops: make([]float64, len(m.Tables)), Edges: make([]float64, len(m.Edges))}
	for i := range m.Tables {
		l.Tables[i], l.Drops[i] = float64(m.Tables[i].Packets), float64(m.Tables[i].Dropped)
	}
	for i := range m.Edges {
		l.Edges[i] = float64(m.Edges[i].Packets)
	}
	return l
}

// Since is the rate between an earlier map and this one. If an entry was replaced meanwhile, a
// counter may fall; then the rate is 0, not negative.
func (m *Map) Since(earlier *Map, elapsed time.Duration) *Load {
	l := m.Total()
	l.PerSecond = true
	for i := range m.Tables {
		was := Table{}
		if t := earlier.Table(m.Tables[i].ID); t != nil {
			was = *t
		}
		l.Tables[i] = rate(l.Tables[i], float64(was.Packets), elapsed)
		l.Drops[i] = rate(l.Drops[i], float64(was.Dropped), elapsed)
	}
	before := make(map[[2]uint8]uint64)
	for _, e := range earlier.Edges {
		before[[2]uint8{e.From, e.To}] = e.Packets
	}
	for i, e := range m.Edges {
		l.Edges[i] = rate(l.Edges[i], float64(before[[2]uint8{e.From, e.To}]), elapsed)
	}
	return l
}

func rate(now, was float64, elapsed time.Duration) float64 {
	if now <= was || elapsed <= 0 {
		return 0
	}
	return (now - was) / elapsed.Seconds()
}

// most is the largest load of an edge, at least 1.
func (l *Load) most() float64 {
	most := 1.0
	for _, v := range l.Edges {
		most = max(most, v)
	}
	return most
}

// text is a number in at most four letters, with its unit: 12k/s.
func (l *Load) text(v float64) string {
	unit := ""
	if l.PerSecond {
		unit = "/s"
	}
	return short(v) + unit
}

// short writes 0, 7, 950, 1.2k, 34k, 5.6M.
func short(v float64) string {
	suffix := ""
	for _, s := range []string{"k", "M", "G", "T"} {
		if v < 999.5 {
			break
		}
		v, suffix = v/1000, s
	}
	if suffix != "" && v < 9.95 {
		return fmt.Sprintf("%.1f%s", v, suffix)
	}
	return fmt.Sprintf("%.0f%s", v, suffix)
}
