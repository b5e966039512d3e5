package schema

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
)

// debianSchema is where Debian's package openvswitch-common has the schema of 8.3.1.
const debianSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// wider are columns that later versions of Open vSwitch allow more values in.
var wider = map[string]string{"Flow_Table.prefixes": `{"key":"string","max":4,"min":0}`}

// plain is a schema's JSON in one way of writing: "string" for {"type": "string"}, and without
// bounds of 1.
func plain(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(t, v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			if v[k] = plain(t, v[k]); (k == "min" || k == "max") && v[k] == 1.0 {
				delete(v, k)
			}
		}
		if only, ok := v["type"].(string); ok && len(v) == 1 {
			return only
		}
		if only, ok := v["key"].(string); ok && len(v) == 1 {
			return only
		}
	}
	return v
}

func read(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return plain(t, v).(map[string]any)
}

// TestColumnsAreOpenVSwitchs compares each table and column with the schema that Debian
// installs. There may be more columns, and those of wider allow more.
func TestColumnsAreOpenVSwitchs(t *testing.T) {
	text, err := os.ReadFile(debianSchema)
	if err != nil {
		t.Skipf("Open vSwitch is not installed: %v", err)
	}
	theirs := read(t, text)["tables"].(map[string]any)
	ours := read(t, []byte(OpenVSwitch().Text()))["tables"].(map[string]any)
	columns := 0
	for name, v := range theirs {
		their := v.(map[string]any)
		our, ok := ours[name].(map[string]any)
		if !ok {
			t.Errorf("table %s is missing", name)
			continue
		}
		for column, want := range their["columns"].(map[string]any) {
			columns++
			got := our["columns"].(map[string]any)[column]
			if more := wider[name+"."+column]; more != "" {
				want = read(t, []byte(`{"type":`+more+`}`))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s.%s is %v, want %v", name, column, got, want)
			}
		}
		delete(their, "columns")
		delete(our, "columns")
		if !reflect.DeepEqual(our, their) {
			t.Errorf("table %s is %v, want %v", name, our, their)
		}
	}
	if len(theirs) != len(ours) || columns < 180 {
		t.Errorf("%d tables with %d columns were compared, and there are %d", len(theirs), columns, len(ours))
	}
}

// TestLaterColumns: columns of Open vSwitch 4.0 are there.
func TestLaterColumns(t *testing.T) {
	d := OpenVSwitch()
	for table, columns := range map[string][]string{
		"CT_Zone": {"limit"}, "Datapath": {"ct_zone_default_limit"}, "Flow_Sample_Collector_Set": {"local_group_id"},
		"IPFIX": {"stats_interval", "template_interval"}, "Mirror": {"filter"},
	} {
		for _, c := range columns {
			r, err := d.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			if i, err := r.Place(c); err != nil || !slices.ContainsFunc(r.Columns, func(o Column) bool { return o.Name == c }) || r.Columns[i].Name != c {
				t.Errorf("%s.%s: place %d, %v", table, c, i, err)
			}
		}
	}
	if _, err := d.Table("None"); err == nil {
		t.Error("there is a table None")
	}
}
