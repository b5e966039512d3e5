package programs

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
)

// namesOf names tables from 0.
func namesOf(all ...string) *flow.Names {
	n := flow.NewNames()
	for i, name := range all {
		n.SetTable(uint8(i), name)
	}
	return n
}

// TestOf: a switch's program is the one that has most of its tables.
func TestOf(t *testing.T) {
	for _, p := range All() {
		var all []string
		for _, table := range p.Tables {
			all = append(all, table.Name)
		}
		if got := layout.Of(All(), namesOf(append(all, "Mine")...)); got != p {
			t.Errorf("the tables of %s are those of %+v", p.Name, got)
		}
	}
	if got := layout.Of(All(), namesOf("Mine", "Yours")); got != nil {
		t.Errorf("the tables of nobody are those of %s", got.Name)
	}
	if got := Stage(namesOf("Classifier", "SpoofGuard"))("Classifier"); got != tables.Stage("Classifier") {
		t.Errorf("two tables that several programs have: %q", got)
	}
	if got := Stage(namesOf("Mine"))("Mine"); got != "" {
		t.Errorf("a table of nobody is in stage %q", got)
	}
}

// TestMarkNames: the same bits have another meaning in another program.
func TestMarkNames(t *testing.T) {
	for name, want := range map[string]string{"windows2020": "FromUplink", "antrea": "FromPodRegMark"} {
		for _, p := range All() {
			if p.Name != name {
				continue
			}
			n := flow.NewNames()
			for i, table := range p.Tables {
				n.SetTable(uint8(i), table.Name)
			}
			id, _ := n.TableID("Classifier")
			mask := uint64(0xffff)
			if name == "antrea" {
				mask = 0xf
			}
			actions := []flow.Action{flow.SetField{Field: flow.Reg0, Value: flow.Value{Lo: 3}, Mask: flow.Value{Lo: mask}}}
			if got := strings.Join(MarkNames(n).Sets(id, actions), ", "); got != want {
				t.Errorf("%s: reg0=3 is %q, want %q", name, got, want)
			}
		}
	}
	if got := MarkNames(namesOf("Mine")).Sets(0, []flow.Action{flow.SetField{Field: flow.Reg0, Value: flow.Value{Lo: 3}, Mask: flow.Value{Lo: 15}}}); got != nil {
		t.Errorf("a table of nobody sets %q", got)
	}
}

// TestNamed: names choose programs that need no cluster. For other names the error says why.
func TestNamed(t *testing.T) {
	for _, name := range Names() {
		if p, err := Named(name); err != nil || p.Name != name || p.Sentence == "" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	for name, want := range map[string]string{"windows": "there is no program", "antrea": "entries come from objects", "": "there are uplink, windows2020"} {
		if _, err := Named(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := tables.Program.Flow(nil); err == nil {
		t.Error("Antrea's program makes entries without objects")
	}
}

// TestFieldsAreApart: in each program, only fields of one union share bits. Every mark fits into
// its field, and no two marks are one value of one field.
func TestFieldsAreApart(t *testing.T) {
	for _, p := range All() {
		for i, f := range p.Marks.Fields {
			for _, g := range p.Marks.Fields[:i] {
				shared := f.Subfield.Field == g.Subfield.Field && !f.Subfield.Mask().And(g.Subfield.Mask()).IsZero()
				if shared && (f.Union == "" || f.Union != g.Union) {
					t.Errorf("%s: %s and %s share bits", p.Name, f.Name, g.Name)
				}
			}
		}
		seen := map[string]bool{}
		for _, m := range p.Marks.Marks {
			key := m.Field.Name + "=" + m.Name
			if m.Value>>m.Field.N != 0 || seen[key] || p.Marks.Of(m.Field, flow.Value{Lo: m.Value}) != m.Name {
				t.Errorf("%s: %s does not fit, or is there twice", p.Name, m.Name)
			}
			seen[key] = true
		}
	}
}
