package diagram

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables"
)

// program reads the sample cluster's entries on node-a.
func program(t testing.TB) *flow.Program {
	t.Helper()
	var src parse.Sources
	for end, to := range map[string]*parse.Source{"flows": &src.Flows, "groups": &src.Groups, "meters": &src.Meters, "ports": &src.Ports} {
		var err error
		if *to, err = parse.File("../examples/two-nodes/node-a." + end); err != nil {
			t.Fatal(err)
		}
	}
	p, err := parse.Program(src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sample(t testing.TB) *Map { return Build(program(t), tables.Stage, nil) }

// TestSample holds the map of the sample cluster against a text that a person
// has read: tables, stages and every way.
func TestSample(t *testing.T) {
	m := sample(t)
	var got bytes.Buffer
	if err := m.Text(&got, m.Total()); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/two-nodes.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("not as %s:\n%s", golden, got.String())
	}
}

// TestWaysAreThoseOfTheText looks for the tables that actions name in the text
// of entries, without reading actions.
func TestWaysAreThoseOfTheText(t *testing.T) {
	p, m := program(t), sample(t)
	have := make(map[[2]string]bool)
	for _, e := range m.Edges {
		have[[2]string{m.Table(e.From).Name, m.Table(e.To).Name}] = true
	}
	named := regexp.MustCompile(`goto_table:(\w+)|resubmit\(,(\w+)\)|[(,]table=(\w+)`)
	group := regexp.MustCompile(`group:(\d+)`)
	want := make(map[[2]string]bool)
	for _, e := range p.Entries {
		text := flow.ActionsText(e.Actions, flow.Format{Names: p.Names})
		for _, g := range group.FindAllStringSubmatch(text, -1) {
			for _, x := range p.Groups {
				if fmt.Sprint(x.ID) == g[1] {
					text += x.Text(p.Names)
				}
			}
		}
		for _, to := range named.FindAllStringSubmatch(text, -1) {
			want[[2]string{p.Names.Table(e.Table), to[1] + to[2] + to[3]}] = true
		}
	}
	if len(want) < 40 || !maps.Equal(have, want) {
		t.Errorf("%d ways, want %d: %v\n%v", len(have), len(want), have, want)
	}
}

// TestCounts: what entries counted is what tables and edges have; a learned
// entry moves no packet, and a rate is never negative.
func TestCounts(t *testing.T) {
	p := program(t)
	count := func(n uint64) *Map { return Build(p, tables.Stage, func(*flow.Entry) uint64 { return n }) }
	first, second := count(5), count(7)
	for _, tab := range second.Tables {
		if tab.Packets != 7*uint64(tab.Entries) || tab.Dropped != 7*uint64(tab.Drops) {
			t.Errorf("%+v", tab)
		}
	}
	l := second.Since(first, 2*time.Second)
	for i, e := range second.Edges {
		want := float64(e.Entries)
		if slices.Equal(e.Kinds, []Kind{Learn}) {
			want = 0
		}
		if l.Edges[i] != want {
			t.Errorf("%v: %v a second, want %v", e, l.Edges[i], want)
		}
	}
	if back := first.Since(second, time.Second); slices.Max(back.Edges) != 0 || slices.Max(back.Tables) != 0 {
		t.Errorf("counters that began anew: %v", back)
	}
	for v, want := range map[float64]string{0: "0", 7: "7", 999: "999", 1000: "1.0k", 1234: "1.2k", 9960: "10k", 34_000: "34k", 999_600: "1.0M", 5.6e6: "5.6M"} {
		if got := short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// pictures are maps with all options, by name.
func pictures(m *Map) map[string]Options {
	return map[string]Options{
		"plain": {}, "light": {Theme: Light}, "dark": {Theme: Dark, Load: m.Total()}, "bare": {Bare: true},
		"focus": {Focus: m.Tables[len(m.Tables)/2].Name},
		"walk":  {Walk: []Hop{{m.First, m.First}, {m.First, m.Edges[0].To}}, Dropped: true},
	}
}

func draw(t testing.TB, m *Map, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.SVG(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPicture: each is well-formed, the same every time, has every table and
// edge once under its id, and nothing from outside.
func TestPicture(t *testing.T) {
	m := sample(t)
	for i := range m.Tables {
		m.Tables[i].Packets, m.Tables[i].Dropped = uint64(i*1e6), uint64(i*999_999)
	}
	for name, o := range pictures(m) {
		svg := draw(t, m, o)
		if svg != draw(t, m, o) || len(svg) > 40_000 {
			t.Errorf("%s: %d bytes, or not the same twice", name, len(svg))
		}
		ids := wellFormed(t, svg)
		for _, tab := range m.Tables {
			for kind, n := range map[string]int{"table": 1, "drop": tab.Drops, "out": tab.Outputs, "agent": tab.PacketIns} {
				if id := fmt.Sprintf("%s-%d", kind, tab.ID); n > 0 && ids[id] != 1 {
					t.Errorf("%s: %d of %s", name, ids[id], id)
				}
			}
		}
		for _, e := range m.Edges {
			if id := fmt.Sprintf("edge-%d-%d", e.From, e.To); ids[id] != 1 {
				t.Errorf("%s: %d of %s", name, ids[id], id)
			}
		}
		for _, outside := range []string{"href", "url(", "@import", "<script", "<image", "on="} {
			if strings.Contains(svg, outside) {
				t.Errorf("%s has %s", name, outside)
			}
		}
	}
}

// wellFormed counts ids.
func wellFormed(t *testing.T, svg string) map[string]int {
	t.Helper()
	ids := make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return ids
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := tok.(xml.StartElement); ok {
			for _, a := range s.Attr {
				if a.Name.Local == "id" {
					ids[a.Value]++
				}
			}
		}
	}
}

// TestNamesFit: every name stands within its box, with a letter's mean width
// generously measured, and is whole.
func TestNamesFit(t *testing.T) {
	const letter = 8.2 // DejaVu Sans Bold at 11.5, which is wide
	for _, tab := range sample(t).Tables {
		lines := nameLines(tab.Name)
		if strings.Join(lines, "") != tab.Name || len(lines) > 2 {
			t.Errorf("%s is written %q", tab.Name, lines)
		}
		for _, line := range lines {
			if float64(len(line))*letter > boxW {
				t.Errorf("%q is wider than its box", line)
			}
		}
	}
	const small = 5.6 // DejaVu Sans at 9
	full := &Map{Tables: []Table{{ID: 254, Name: "Full", Entries: 999_499, Packets: 1e14, Dropped: 999_499_000}}}
	for _, l := range []*Load{nil, full.Since(&Map{}, time.Second)} {
		d := drawing{layout: newLayout(full), o: Options{Load: l}}
		if note := d.lineBelow(0); float64(len([]rune(note)))*small > boxW {
			t.Errorf("%q is wider than its box", note)
		}
	}
	for _, long := range []string{strings.Repeat("x", 300), strings.Repeat("ab-", 40), "ÄÖÜ" + strings.Repeat("é", 50)} {
		for _, line := range nameLines(long) {
			if len([]rune(line)) > 17 {
				t.Errorf("%d letters in %q", len([]rune(line)), line)
			}
		}
	}
}

// TestLinesKeepClear: no line of any map crosses a box, none leaves the
// picture, every line is upright or level, and it begins and ends at its boxes.
func TestLinesKeepClear(t *testing.T) {
	maps := []*Map{sample(t)}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		maps = append(maps, random(r))
	}
	for n, m := range maps {
		l := newLayout(m)
		for i := range m.Edges {
			ps := l.route(i)
			from, to := l.ends(&m.Edges[i])
			if !touches(l.places[from], ps[0]) || !touches(l.places[to], ps[len(ps)-1]) {
				t.Fatalf("map %d, edge %+v does not join its boxes: %v", n, m.Edges[i], ps)
			}
			for k := 1; k < len(ps); k++ {
				a, b := ps[k-1], ps[k]
				if a.x != b.x && a.y != b.y || min(a.x, b.x, a.y, b.y) < 0 || max(a.x, b.x) > l.width || max(a.y, b.y) > l.height-legendH {
					t.Fatalf("map %d, edge %+v runs %v to %v", n, m.Edges[i], a, b)
				}
				for j, p := range l.places {
					if crosses(p, a, b) {
						t.Fatalf("map %d, edge %+v crosses table %d: %v %v", n, m.Edges[i], m.Tables[j].ID, a, b)
					}
				}
			}
		}
	}
}

func touches(p place, q point) bool {
	return q.x >= p.x && q.x <= p.x+boxW && q.y >= p.y && q.y <= p.y+boxH
}

// crosses says whether a line has points inside a box.
func crosses(p place, a, b point) bool {
	return max(a.x, b.x) > p.x && min(a.x, b.x) < p.x+boxW && max(a.y, b.y) > p.y && min(a.y, b.y) < p.y+boxH
}

// random is a map of anything.
func random(r *rand.Rand) *Map {
	m := &Map{}
	id, stage := uint8(0), 0
	for range 1 + r.IntN(40) {
		m.Tables = append(m.Tables, Table{ID: id, Name: fmt.Sprint(id), Stage: []string{"", fmt.Sprint("s", stage)}[r.IntN(2)]})
		id += 1 + uint8(r.IntN(3))
		stage += r.IntN(2)
	}
	any := func() uint8 { return m.Tables[r.IntN(len(m.Tables))].ID }
	for range r.IntN(60) {
		e := [2]uint8{any(), any()}
		if !slices.ContainsFunc(m.Edges, func(x Edge) bool { return x.From == e[0] && x.To == e[1] }) {
			m.Edges = append(m.Edges, Edge{From: e[0], To: e[1], Kinds: []Kind{Goto}})
		}
	}
	return m
}

// TestHostileNames: whatever a table is called is text.
func TestHostileNames(t *testing.T) {
	p := &flow.Program{Names: flow.NewNames()}
	p.Names.SetTable(0, `"]; x [label="</text><script>`)
	p.Names.SetTable(1, "a\n-->\x00b\"")
	p.Entries = []*flow.Entry{{Actions: []flow.Action{flow.GotoTable{Table: 1}}}, {Table: 1}}
	m := Build(p, func(s string) string { return s + "<b>" }, nil)
	svg := draw(t, m, Options{})
	wellFormed(t, svg)
	if strings.Contains(svg, "<script") || strings.Contains(svg, "<b>") {
		t.Error(svg)
	}
	for name, write := range map[string]func(io.Writer) error{"dot": m.DOT, "mermaid": m.Mermaid} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			quotes := strings.Count(strings.ReplaceAll(line, `\"`, ""), `"`)
			if quotes%2 != 0 || strings.ContainsRune(line, 0) || name == "mermaid" && strings.Contains(line, "<") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestTextForms: DOT, Mermaid and JSON have every table, stage and edge.
func TestTextForms(t *testing.T) {
	m := sample(t)
	var dot, mermaid bytes.Buffer
	if err := errors.Join(m.DOT(&dot), m.Mermaid(&mermaid)); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Edges {
		for text, line := range map[*bytes.Buffer]string{&dot: fmt.Sprintf(`(?m)^  t%d -> t%d \[.*\];$`, e.From, e.To), &mermaid: fmt.Sprintf(`(?m)^  t%d -\.?->\|.*\| t%d$`, e.From, e.To)} {
			if n := len(regexp.MustCompile(line).FindAllString(text.String(), -1)); n != 1 {
				t.Errorf("%d of %s", n, line)
			}
		}
	}
	for _, tab := range m.Tables {
		if !strings.Contains(dot.String(), fmt.Sprintf(`t%d [label="%s"];`, tab.ID, tab.Name)) || !strings.Contains(mermaid.String(), fmt.Sprintf(`t%d["%s"]`, tab.ID, tab.Name)) {
			t.Errorf("%s is missing", tab.Name)
		}
	}
	if strings.Count(dot.String(), "{") != strings.Count(dot.String(), "}") || strings.Count(mermaid.String(), "subgraph") != strings.Count(mermaid.String(), "  end\n") {
		t.Error("braces do not match")
	}
	b, err := json.Marshal(m)
	var back Map
	if err := errors.Join(err, json.Unmarshal(b, &back)); err != nil || draw(t, &back, Options{}) != draw(t, m, Options{}) {
		t.Errorf("a map that went through JSON is drawn otherwise: %v", err)
	}
}

// TestNothing: a switch without entries has a map too.
func TestNothing(t *testing.T) {
	m := Build(&flow.Program{}, nil, nil)
	wellFormed(t, draw(t, m, Options{Load: m.Total()}))
}
