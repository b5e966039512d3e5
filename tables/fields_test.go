package tables

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestFields: no two fields share a bit unless both name the same union, and
// none exceeds its register.
func TestFields(t *testing.T) {
	all := Fields()
	for i, f := range all {
		if width := flow.FieldByID(f.Subfield.Field).Bits; int(f.Ofs)+int(f.N) > width || f.N == 0 {
			t.Errorf("%s has bits %d to %d of %d", f.Name, f.Ofs, f.Ofs+f.N-1, width)
		}
		for _, g := range all[:i] {
			if overlap(f, g) && (f.Union == "" || f.Union != g.Union) {
				t.Errorf("%s and %s share bits", f.Name, g.Name)
			}
		}
	}
}

// overlap compares bits where they are in a key, so that registers and their
// unions are seen.
func overlap(f, g Field) bool {
	var a, b flow.Key
	f.Put(&a, flow.Ones(128))
	g.Put(&b, flow.Ones(128))
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

// TestMarks: every value fits into its field, and no two marks are the same.
func TestMarks(t *testing.T) {
	type place struct {
		field flow.Subfield
		value uint64
	}
	names := map[place]string{}
	for _, k := range Marks() {
		if k.Value>>k.Field.N != 0 {
			t.Errorf("%s: %d does not fit into %d bits", k.Name, k.Value, k.Field.N)
		}
		p := place{k.Field.Subfield, k.Value}
		if names[p] != "" {
			t.Errorf("%s is %s", k.Name, names[p])
		}
		names[p] = k.Name
	}
}

// TestListed: Fields and Marks have what fields.go declares, under its name.
func TestListed(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range Fields() {
		listed[f.Name] = true
	}
	for _, k := range Marks() {
		listed[k.Name] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if name := literalName(spec.Values[0]); name != "" {
				declared++
				if !listed[name] {
					t.Errorf("%s is not listed", name)
				}
				if own := spec.Names[0]; own.IsExported() && own.Name != name {
					t.Errorf("%s calls itself %s", own.Name, name)
				}
			}
		}
		return true
	})
	if declared != len(listed) {
		t.Errorf("%d names declared, %d listed", declared, len(listed))
	}
}

// literalName is the first text in an expression.
func literalName(e ast.Expr) (name string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && name == "" {
			name = strings.Trim(l.Value, `"`)
		}
		return true
	})
	return name
}

// TestSeedDocument checks some marks against the bits that the document gives.
func TestSeedDocument(t *testing.T) {
	for _, c := range []struct {
		mark Mark
		want string
	}{
		{FromTCReturnRegMark, "set_field:0x6/0xf->reg0"},
		{ToUplinkRegMark, "set_field:0x40/0xf0->reg0"},
		{RewriteMACRegMark, "set_field:0x200/0x200->reg0"},
		{DispositionPassRegMark, "set_field:0x1800/0x1800->reg0"},
		{GeneratedRejectPacketOutRegMark, "set_field:0x2000/0x2000->reg0"},
		{SvcNoEpRegMark, "set_field:0x4000/0x4000->reg0"},
		{RemoteSNATRegMark, "set_field:0x80000/0x80000->reg0"},
		{L7NPRedirectRegMark, "set_field:0x100000/0x100000->reg0"},
		{OutputToControllerRegMark, "set_field:0x400000/0x600000->reg0"},
		{EpToLearnRegMark, "set_field:0x30000/0x70000->reg4"},
		{NestedServiceRegMark, "set_field:0x1000000/0x1000000->reg4"},
		{FromLocalRegMark, "set_field:0x10000000/0x10000000->reg4"},
		{IPv6CtZoneTypeRegMark, "set_field:0x3000/0xf000->reg8"},
		{FromBridgeCTMark, "set_field:0x5/0xf->ct_mark"},
		{L7NPRedirectCTMark, "set_field:0x80/0x80->ct_mark"},
		{HostLocalSourceMark, "set_field:0x80000000/0x80000000->pkt_mark"},
	} {
		if got := flow.ActionsText([]flow.Action{c.mark.Set()}, flow.Format{}); got != c.want {
			t.Errorf("%s: %s, want %s", c.mark.Name, got, c.want)
		}
	}
}
