package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// FuzzExecute: whatever operations a client sends, the invariants hold after them, and what the
// log has is what the database has.
func FuzzExecute(f *testing.F) {
	for _, s := range []string{
		`{"op":"insert","table":"QoS","row":{"type":"x","queues":["map",[[1,["named-uuid","q"]]]]},"uuid-name":"s"},{"op":"insert","table":"Queue","row":{},"uuid-name":"q"}`,
		`{"op":"mutate","table":"Open_vSwitch","where":[],"mutations":[["next_cfg","+=",1],["external_ids","insert",["map",[["a","b"]]]]]},{"op":"commit","durable":false}`,
		`{"op":"delete","table":"Bridge","where":[["name","==","br0"]]},{"op":"update","table":"Open_vSwitch","where":[],"row":{"bridges":["set",[]]}}`,
		`{"op":"wait","table":"Port","where":[["tag","<",3],["trunks","includes",1]],"columns":["name"],"until":"!=","rows":[{"name":"x"}],"timeout":0}`,
		`{"op":"select","table":"Interface","where":[true,["ofport","excludes",["set",[1]]]],"columns":["name","_uuid"]},{"op":"assert","lock":"l"},{"op":"abort"},{"op":"comment","comment":"c"}`,
		`{"op":"insert","table":"Mirror","row":{"name":"m","select_src_port":["uuid","00000000-0000-0000-0000-000000000001"]},"uuid-name":"m"},{"op":"mutate","table":"Bridge","where":[],"mutations":[["mirrors","insert",["named-uuid","m"]]]}`,
	} {
		f.Add(s)
	}
	path, head := emptyLog(f)
	f.Fuzz(func(t *testing.T, s string) {
		v, err := jsonrpc.Decode([]byte("[" + s + "]"))
		if err != nil {
			return
		}
		if err := os.WriteFile(path, head, 0o600); err != nil {
			t.Fatal(err)
		}
		d, _ := open(t, path)
		fill(t, d)
		d.Execute(v.([]any), Caller{})
		checkInvariants(t, d)
		want := persistentState(d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d, _ = open(t, path)
		defer d.Close()
		if got := persistentState(d); got != want {
			t.Errorf("%s: after a restart %s, want %s", s, got, want)
		}
	})
}

// persistentState is the rows without the columns that a restart clears.
func persistentState(d *Database) string {
	e := New(d.Schema)
	d.Read(func(v View) {
		for _, t := range d.Schema.Tables {
			for r := range v.Rows(t) {
				c := r.clone()
				for i := range t.Columns {
					if t.Columns[i].Ephemeral && i != schema.VersionColumn {
						c.Cells[i] = t.Columns[i].Type.Default()
					}
				}
				e.tables[e.mustTable(t.Name)][r.ID()] = c
			}
		}
	})
	return state(e)
}

// emptyLog makes a log without transactions, and returns its bytes.
func emptyLog(f *testing.F) (path string, head []byte) {
	path = filepath.Join(f.TempDir(), "conf.db")
	d, _, err := Open(path, schema.OpenVSwitch())
	if err != nil {
		f.Fatal(err)
	}
	if err := d.Close(); err != nil {
		f.Fatal(err)
	}
	if head, err = os.ReadFile(path); err != nil {
		f.Fatal(err)
	}
	return path, head
}

// FuzzOpen: whatever a file has, it is refused or gives rows that hold the invariants.
func FuzzOpen(f *testing.F) {
	path, head := emptyLog(f)
	for _, s := range []string{`{"QoS":{"00000000-0000-0000-0000-000000000001":{"type":"x"}}}`, `{"_is_diff":true,"Open_vSwitch":{"00000000-0000-0000-0000-000000000001":{"next_cfg":1}}}`, `{"QoS":{"00000000-0000-0000-0000-000000000001":null}}`, `{"QoS":7}`, `7`} {
		f.Add([]byte(s), true)
	}
	f.Add([]byte("OVSDB JSON 3 x\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, whole bool) {
		if whole {
			b = sealed(b)
		}
		if err := os.WriteFile(path, append(head[:len(head):len(head)], b...), 0o600); err != nil {
			t.Fatal(err)
		}
		d, _, err := Open(path, schema.OpenVSwitch())
		if err != nil {
			return
		}
		defer d.Close()
		for _, rows := range d.tables {
			for _, r := range rows {
				if err := checkAll(r); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
