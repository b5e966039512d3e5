package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Options say what a picture shows in addition to the tables.
type Options struct {
	Theme Theme
	// Load makes busy edges thick, and adds the tables' packets and drops; nil for a map
	// without counters.
	Load *Load
	// Walk is a packet's way. Its tables are numbered in order; the rest is faint.
	Walk []Hop
	// Dropped says that the walk ends in a drop, in its last table.
	Dropped bool
	// Focus is a table to emphasize, with its edges; "" for none.
	Focus string
	// Unstyled leaves out the style sheet (Styles) and all style attributes. Some pages forbid
	// them.
	Unstyled bool
	// Bare makes a small picture for a document, without tooltips and legend. Faint elements get
	// no ids.
	Bare bool
}

// SVG draws the map. A table's group has the id table-N, an edge's edge-N-M. The others are
// drop-N for drops, out-N for outputs, and agent-N for packets to the agent. N and M are table
// numbers. The picture refers to no font, image or other resource.
func (m *Map) SVG(w io.Writer, o Options) error {
	d := drawing{layout: newLayout(m), o: o, turns: map[uint8][]int{}, walked: map[Hop]bool{}}
	for i, h := range o.Walk {
		d.turns[h.To] = append(d.turns[h.To], i+1)
		d.walked[h] = true
	}
	d.draw()
	_, err := w.Write(d.b.Bytes())
	return err
}

// drawing is a picture in progress.
type drawing struct {
	*layout
	o      Options
	b      bytes.Buffer
	turns  map[uint8][]int // of a table in the walk
	walked map[Hop]bool
}

func (d *drawing) draw() {
	height := d.height
	if d.o.Bare {
		height -= legendH
	}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="map" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n",
		num(d.width), num(height), num(d.width), num(height))
	d.printf("<title>Pipeline: %d tables, %d ways between them</title>\n", len(d.m.Tables), len(d.m.Edges))
	if !d.o.Unstyled {
		d.printf("<style>%s</style>\n", Styles(d.o.Theme))
	}
	d.printf(`<rect class="ground" width="%s" height="%s"/>`+"\n", num(d.width), num(height))
	d.panels()
	d.edges()
	d.entrance()
	for i := range d.m.Tables {
		d.table(i)
	}
	if !d.o.Bare {
		d.legend()
	}
	d.printf("</svg>\n")
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// text writes a text, with its special characters escaped.
func (d *drawing) text(class string, x, y float64, s string) {
	d.printf(`<text class="%s" x="%s" y="%s">`, class, num(x), num(y))
	xml.EscapeText(&d.b, []byte(s))
	d.printf("</text>\n")
}

// title adds a tooltip.
func (d *drawing) title(format string, args ...any) {
	if d.o.Bare {
		return
	}
	d.printf("<title>")
	xml.EscapeText(&d.b, fmt.Appendf(nil, format, args...))
	d.printf("</title>")
}

// panels draws the stages: a background behind their boxes, and their names.
func (d *drawing) panels() {
	for b, band := range d.bands {
		for c, col := range band {
			x, bottom := columnX(c), d.boxTop(b)+float64(len(col.tables))*(boxH+gapY)
			d.printf(`<rect class="panel" x="%s" y="%s" width="%d" height="%s" rx="6"/>`+"\n", num(x-4), num(d.top[b]), boxW+8, num(bottom-d.top[b]-4))
			if col.stage != "" {
				d.text("stage", x+boxW/2, d.top[b]+14, col.stage)
			}
		}
	}
}

// entrance draws the arrow of entering packets.
func (d *drawing) entrance() {
	i, ok := d.index[d.m.First]
	if !ok {
		return
	}
	p := d.places[i]
	y := p.y + boxH/2
	class := ""
	if len(d.o.Walk) > 0 {
		class = " on"
	}
	d.printf(`<g id="in" class="edge%s">`, class)
	d.line([]point{{p.x - gutterW + 2, y}, {p.x, y}}, 2)
	d.printf("</g>\n")
	d.text("note", p.x-gutterW/2, y-7, "packets")
}

// edges draws lit and busy edges last, over the others.
func (d *drawing) edges() {
	var behind, front []int
	for i := range d.m.Edges {
		lit := d.edgeLit(&d.m.Edges[i])
		if lit == " on" || lit == "" && d.o.Load != nil && d.o.Load.Edges[i] > 0 {
			front = append(front, i)
		} else {
			behind = append(behind, i)
		}
	}
	if d.o.Bare && (len(d.o.Walk) > 0 || d.o.Focus != "") {
		d.shadow(behind)
		behind = nil
	}
	for _, i := range append(behind, front...) {
		d.edge(i)
	}
}

// shadow draws edges without details as one path.
func (d *drawing) shadow(edges []int) {
	d.printf(`<path class="line off" d="`)
	for _, i := range edges {
		d.bends(d.route(i))
	}
	d.printf("\"/>\n")
}

func (d *drawing) edgeLit(e *Edge) string {
	focused := d.o.Focus != "" && (d.name(e.From) == d.o.Focus || d.name(e.To) == d.o.Focus)
	return d.lit(d.walked[Hop{e.From, e.To}] || focused)
}

// edge draws a way between two tables.
func (d *drawing) edge(i int) {
	e := &d.m.Edges[i]
	width := 1.3
	class := "edge"
	if slices.Equal(e.Kinds, []Kind{Learn}) {
		class += " learn"
	} else if slices.Contains(e.Kinds, CT) {
		class += " ct"
	}
	if l := d.o.Load; l != nil {
		share := l.Edges[i] / l.most()
		if l.Edges[i] > 0 {
			class += " busy"
			width = 1.6 + 5.4*share
		} else {
			class += " idle"
		}
	}
	class += d.edgeLit(e)
	d.printf(`<g id="edge-%d-%d" class="%s">`, e.From, e.To, class)
	d.title("%s", d.edgeTitle(i))
	d.line(d.route(i), width)
	d.printf("</g>\n")
}

// lit is the class of an element that a walk or a focus shows or does not.
func (d *drawing) lit(shown bool) string {
	switch {
	case shown:
		return " on"
	case len(d.o.Walk) > 0 || d.o.Focus != "":
		return " off"
	}
	return ""
}

func (d *drawing) name(id uint8) string { return d.m.Tables[d.index[id]].Name }

func (d *drawing) edgeTitle(i int) string {
	e := &d.m.Edges[i]
	s := fmt.Sprintf("%s → %s: %s, %s", d.name(e.From), d.name(e.To), e.words(), counted(e.Entries, "entry", "entries"))
	if l := d.o.Load; l != nil {
		s += ", " + l.text(l.Edges[i]) + " packets"
	}
	return s
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// line draws a line with round corners and an arrow.
func (d *drawing) line(ps []point, width float64) {
	last := len(ps) - 1
	tip, from := ps[last], ps[last-1]
	dx, dy := sign(tip.x-from.x), sign(tip.y-from.y)
	head, half := 6.0, max(3.6, width*.8)
	ps = append(slices.Clone(ps[:last]), point{tip.x - dx*head, tip.y - dy*head})
	d.printf(`<path class="line" d="`)
	d.bends(ps)
	d.printf(`"`)
	if width != 1.3 && !d.o.Unstyled {
		d.printf(` style="stroke-width:%.1f"`, width)
	}
	end := ps[last]
	d.printf(`/><path class="head" d="M%s %sL%s %sL%s %sz"/>`, num(tip.x), num(tip.y),
		num(end.x-dy*half), num(end.y-dx*half), num(end.x+dy*half), num(end.y+dx*half))
}

// bends writes a line with round corners, as the attribute d of a path.
func (d *drawing) bends(ps []point) {
	last := len(ps) - 1
	d.printf("M%s %s", num(ps[0].x), num(ps[0].y))
	for i := 1; i < last; i++ {
		d.corner(ps[i-1], ps[i], ps[i+1])
	}
	d.printf("L%s %s", num(ps[last].x), num(ps[last].y))
}

// corner goes from a towards b and turns to c.
func (d *drawing) corner(a, b, c point) {
	const radius = 6
	r := min(radius, dist(a, b)/2, dist(b, c)/2)
	p := point{b.x - sign(b.x-a.x)*r, b.y - sign(b.y-a.y)*r}
	q := point{b.x + sign(c.x-b.x)*r, b.y + sign(c.y-b.y)*r}
	d.printf("L%s %sQ%s %s %s %s", num(p.x), num(p.y), num(b.x), num(b.y), num(q.x), num(q.y))
}

// dist is the length of a vertical or horizontal line.
func dist(a, b point) float64 { return max(b.x-a.x, a.x-b.x) + max(b.y-a.y, a.y-b.y) }

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// num is a coordinate in its shortest form.
func num(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// nameLines breaks a name that is too long for its box at the beginning of a word. It cuts a
// name that is still too long.
func nameLines(name string) []string {
	const one, most = 14, 17
	rs := []rune(name)
	if len(rs) <= one {
		return []string{name}
	}
	at := 0
	for i := 1; i < len(rs); i++ {
		word := unicode.IsUpper(rs[i]) && !unicode.IsUpper(rs[i-1]) || strings.ContainsRune("-_. ", rs[i-1])
		if word && i <= most && abs(2*i-len(rs)) < abs(2*at-len(rs)) {
			at = i
		}
	}
	if at == 0 {
		at = min(len(rs)/2+1, most)
	}
	lines := []string{string(rs[:at]), string(rs[at:])}
	if rest := rs[at:]; len(rest) > most {
		lines[1] = string(rest[:most-1]) + "…"
	}
	return lines
}

func abs(n int) int { return max(n, -n) }
