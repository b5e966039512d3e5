package diagram

import (
	"fmt"
	"strconv"
)

// Boxes, and the marks below them: where packets leave the pipeline.

// table draws a table.
func (d *drawing) table(i int) {
	t, p := &d.m.Tables[i], d.places[i]
	class := "table" + d.lit(len(d.turns[t.ID]) > 0 || d.o.Focus != "" && d.near(t.ID))
	if t.Name == d.o.Focus {
		class = "table focus"
	}
	d.printf(`<g id="table-%d" class="%s">`, t.ID, class)
	d.title("%s", d.tableTitle(i))
	d.printf(`<rect class="box" x="%s" y="%s" width="%d" height="%d" rx="5"/>`+"\n", num(p.x), num(p.y), boxW, boxH)
	mid := p.x + boxW/2
	lines := nameLines(t.Name)
	y := p.y + 14
	if len(lines) == 1 {
		y += 6
	}
	for _, line := range lines {
		d.text("name", mid, y, line)
		y += 12.5
	}
	d.text("note", mid, p.y+boxH-5, d.lineBelow(i))
	d.turn(t, p)
	d.printf("</g>\n")
	d.pills(i)
}

// near says whether an edge joins a table with the one in focus.
func (d *drawing) near(id uint8) bool {
	for i := range d.m.Edges {
		e := &d.m.Edges[i]
		if e.From == id && d.name(e.To) == d.o.Focus || e.To == id && d.name(e.From) == d.o.Focus {
			return true
		}
	}
	return false
}

// lineBelow is the line below a name: number and entries, or entries and packets if there are
// counters.
func (d *drawing) lineBelow(i int) string {
	t := &d.m.Tables[i]
	entries := short(float64(t.Entries)) + " entries"
	if t.Entries == 1 {
		entries = "1 entry"
	}
	if l := d.o.Load; l != nil {
		return entries + " · " + l.text(l.Tables[i])
	}
	if t.Name == strconv.Itoa(int(t.ID)) {
		return entries
	}
	return fmt.Sprintf("%d · %s", t.ID, entries)
}

func (d *drawing) tableTitle(i int) string {
	t := &d.m.Tables[i]
	s := fmt.Sprintf("table %d, %s", t.ID, t.Name)
	if t.Stage != "" {
		s += ", stage " + t.Stage
	}
	s += ": " + counted(t.Entries, "entry", "entries")
	if l := d.o.Load; l != nil {
		s += fmt.Sprintf(", %s packets, %s dropped", l.text(l.Tables[i]), l.text(l.Drops[i]))
	}
	return s
}

// turn draws a table's numbers in the walk.
func (d *drawing) turn(t *Table, p place) {
	for k, n := range d.turns[t.ID] {
		x := p.x + 2 + float64(k)*16
		d.printf(`<circle class="disc" cx="%s" cy="%s" r="7.5"/>`, num(x), num(p.y+1))
		d.text("turn", x, p.y+4, strconv.Itoa(n))
	}
}

// pill is a mark of a way out of the pipeline.
type pill struct {
	class, text string
	x, w        float64 // from the left side of the box
	on          bool
}

// pills draws the marks below a box, beside the arrow that may leave there.
func (d *drawing) pills(i int) {
	t, p := &d.m.Tables[i], d.places[i]
	last := len(d.o.Walk) > 0 && d.o.Walk[len(d.o.Walk)-1].To == t.ID
	drop := pill{class: "drop", text: "drop", x: boxW - 30, w: 28, on: last && d.o.Dropped}
	busy := drop.on
	if l := d.o.Load; l != nil && l.Drops[i] > 0 {
		drop.text = "drop " + l.text(l.Drops[i])
		drop.x, drop.w, busy = boxW/2+8, boxW/2-10, true
	}
	if busy {
		drop.class += " busy"
	}
	if t.Drops > 0 || busy {
		d.pill("drop", t, p, drop, counted(t.Drops, "entry drops", "entries drop"))
	}
	if t.PacketIns > 0 {
		d.pill("agent", t, p, pill{class: "agent", text: "agent", x: 2, w: 30}, counted(t.PacketIns, "entry hands", "entries hand")+" packets to the agent")
	}
	if t.Outputs > 0 {
		d.pill("out", t, p, pill{class: "out", text: "out", x: 35, w: 22, on: last && !d.o.Dropped}, counted(t.Outputs, "entry sends", "entries send")+" to ports")
	}
}

func (d *drawing) pill(kind string, t *Table, p place, q pill, title string) {
	if len(d.o.Walk) > 0 {
		q.class += map[bool]string{true: " on", false: " off"}[q.on]
	} else if d.o.Focus != "" && t.Name != d.o.Focus {
		q.class += " off"
	}
	d.printf(`<g id="%s-%d" class="%s">`, kind, t.ID, q.class)
	d.title("%s", title)
	x, y := p.x+q.x, p.y+boxH+3
	d.printf(`<rect class="pill" x="%s" y="%s" width="%s" height="12" rx="6"/>`, num(x), num(y), num(q.w))
	d.text("mark", x+q.w/2, y+9, q.text)
	d.printf("</g>\n")
}

// legend says what the lines and marks mean.
func (d *drawing) legend() {
	x, y := float64(margin+gutterW), d.height-legendH+12
	sample := func(class, text string, w float64) {
		d.printf(`<g class="%s">`, class)
		d.line([]point{{x, y}, {x + 34, y}}, 1.3)
		d.printf("</g>\n")
		d.text("key", x+40, y+3.5, text)
		x += w
	}
	sample("edge", "goes on, or asks and comes back", 222)
	sample("edge ct", "by way of conntrack", 162)
	sample("edge learn", "makes an entry there", 166)
	for _, k := range []struct {
		class, mark, text string
		w                 float64
	}{{"drop", "drop", "an entry drops", 120}, {"out", "out", "sends to a port", 124}, {"agent", "agent", "hands to the agent", 142}} {
		d.printf(`<g class="%s"><rect class="pill" x="%s" y="%s" width="30" height="12" rx="6"/>`, k.class, num(x), num(y-6))
		d.text("mark", x+15, y+3, k.mark)
		d.printf("</g>\n")
		d.text("key", x+36, y+3.5, k.text)
		x += k.w
	}
	if d.o.Load != nil {
		sample("edge busy", "packets pass; the thicker, the more", 200)
	}
}
