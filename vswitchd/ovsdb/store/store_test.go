package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// execute runs operations, given as the members of a JSON array, and returns the results as
// JSON.
func execute(t *testing.T, d *Database, operations string) string {
	t.Helper()
	v, err := jsonrpc.Decode([]byte("[" + operations + "]"))
	if err != nil {
		t.Fatalf("%s: %v", operations, err)
	}
	o := d.Execute(v.([]any), Caller{})
	if o.Retry != nil {
		return fmt.Sprintf("waits for %v", o.Left)
	}
	b, err := jsonrpc.Encode(o.Results)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// state is all rows as JSON, their versions left out.
func state(d *Database) string {
	all := map[string]any{}
	d.Read(func(v View) {
		for _, t := range d.Schema.Tables {
			for r := range v.Rows(t) {
				row := map[string]any{}
				for i, c := range t.Columns {
					if i != schema.VersionColumn && !datum.Equal(r.Cells[i], c.Type.Default()) {
						row[c.Name] = c.Type.JSONOf(r.Cells[i])
					}
				}
				all[t.Name+" "+r.ID().String()] = row
			}
		}
	})
	b, _ := json.Marshal(all)
	return string(b)
}

// newSwitch makes a database with a bridge br0 that has a port p0.
func newSwitch(t *testing.T) *Database {
	t.Helper()
	d := New(schema.OpenVSwitch())
	fill(t, d)
	return d
}

func fill(t *testing.T, d *Database) {
	t.Helper()
	got := execute(t, d, `
		{"op":"insert","table":"Interface","row":{"name":"p0"},"uuid-name":"i"},
		{"op":"insert","table":"Port","row":{"name":"p0","interfaces":["named-uuid","i"]},"uuid-name":"p"},
		{"op":"insert","table":"Bridge","row":{"name":"br0","ports":["named-uuid","p"]},"uuid-name":"b"},
		{"op":"insert","table":"Open_vSwitch","row":{"bridges":["named-uuid","b"]}}`)
	if strings.Contains(got, "error") {
		t.Fatal(got)
	}
}

// TestOperations: what operations answer, after which a transaction that failed has changed
// nothing.
func TestOperations(t *testing.T) {
	const row = `"op":"insert","table":"QoS"`
	for _, c := range []struct{ operations, want string }{
		{`{"op":"comment","comment":"x"}`, `[{}]`},
		{`{"op":"select","table":"Bridge","where":[],"columns":["name"]}`, `[{"rows":[{"name":"br0"}]}]`},
		{`{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"secure"}},{"op":"select","table":"Bridge","where":[["fail_mode","==","secure"]],"columns":["name"]}`, `[{"count":1},{"rows":[{"name":"br0"}]}]`},
		{`{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"open"}}`, `constraint violation`},
		{`{"op":"update","table":"Bridge","where":[],"row":{"name":"br1"}}`, `constraint violation`},
		{`{"op":"update","table":"Bridge","where":[],"row":{"nothing":1}}`, `unknown column`},
		{`{"op":"update","table":"Nothing","where":[],"row":{}}`, `unknown table`},
		{`{"op":"update","table":"Bridge","row":{}}`, `syntax error`},
		{`{"op":"update","table":"Bridge","where":[],"row":{},"extra":1}`, `syntax error`},
		{`{"op":"nothing"}`, `syntax error`},
		{`7`, `syntax error`},
		{`{"op":"update","table":"Interface","where":[],"row":{"ofport_request":0}}`, `constraint violation`},
		{`{"op":"update","table":"Interface","where":[],"row":{"ofport_request":65280}}`, `constraint violation`},
		{`{"op":"update","table":"Interface","where":[],"row":{"ofport":["set",[1,2]]}}`, `constraint violation`},
		{`{"op":"update","table":"Interface","where":[],"row":{"ofport":1.5}}`, `syntax error`},
		{`{"op":"update","table":"Interface","where":[],"row":{"ofport":9223372036854775808}}`, `syntax error`},
		{`{"op":"update","table":"Port","where":[],"row":{"trunks":["set",[1,1]]}}`, `syntax error`},
		{`{"op":"update","table":"Port","where":[],"row":{"external_ids":["map",[["k"]]]}}`, `syntax error`},
		{`{"op":"update","table":"Interface","where":[],"row":{"type":"a\u0000b"}}`, `syntax error`},
		{`{"op":"update","table":"Port","where":[],"row":{"interfaces":["set",[]]}}`, `constraint violation`},
		{`{"op":"update","table":"Port","where":[],"row":{"interfaces":["uuid","00000000-0000-0000-0000-000000000001"]}}`, `referential integrity violation`},
		{`{"op":"insert","table":"Port","row":{"name":"lost"}}`, `referential integrity violation`},
		{`{"op":"insert","table":"Open_vSwitch","row":{}}`, `constraint violation`},
		{`{` + row + `,"uuid-name":"a"},{` + row + `,"uuid-name":"a","row":{}}`, `syntax error`},
		{`{` + row + `,"row":{},"uuid-name":"a"},{` + row + `,"row":{},"uuid-name":"a"}`, `duplicate uuid-name`},
		{`{` + row + `,"row":{"_uuid":["uuid","00000000-0000-0000-0000-000000000001"]}}`, `constraint violation`},
		{`{` + row + `,"row":{"type":"x"},"uuid":"00000000-0000-0000-0000-000000000009"},{` + row + `,"row":{},"uuid":"00000000-0000-0000-0000-000000000009"}`, `duplicate uuid`},
		{`{` + row + `,"row":{"type":"x"}},{"op":"abort"},{"op":"comment","comment":"x"}`, `aborted`},
		{`{"op":"assert","lock":"l"}`, `not owner`},
		{`{"op":"commit","durable":true}`, `[{}]`},
		{`{"op":"wait","table":"Bridge","where":[],"columns":["name"],"until":"==","rows":[{"name":"br0"}],"timeout":0}`, `[{}]`},
		{`{"op":"wait","table":"Bridge","where":[],"columns":["name"],"until":"!=","rows":[{"name":"br0"}],"timeout":0}`, `timed out`},
		{`{"op":"wait","table":"Bridge","where":[],"columns":["name"],"until":"!=","rows":[{"name":"br0"}],"timeout":5}`, `waits for 5ms`},
		{`{"op":"wait","table":"Bridge","where":[],"columns":["name"],"until":"!=","rows":[{"name":"br0"}]}`, `waits for -1ns`},
		{`{"op":"wait","table":"Bridge","where":[],"columns":["name"],"until":"==","rows":[{"fail_mode":"secure"}]}`, `syntax error`},
		{`{"op":"mutate","table":"Open_vSwitch","where":[],"mutations":[["next_cfg","+=",41],["next_cfg","-=",-1],["next_cfg","*=",3],["next_cfg","/=",2],["next_cfg","%=",10]]},{"op":"select","table":"Open_vSwitch","where":[],"columns":["next_cfg"]}`, `[{"count":1},{"rows":[{"next_cfg":3}]}]`},
		{`{"op":"mutate","table":"Open_vSwitch","where":[],"mutations":[["next_cfg","/=",0]]}`, `domain error`},
		{`{"op":"mutate","table":"Open_vSwitch","where":[],"mutations":[["next_cfg","+=",9223372036854775807],["next_cfg","+=",1]]}`, `range error`},
		{`{"op":"mutate","table":"Open_vSwitch","where":[],"mutations":[["ovs_version","+=",1]]}`, `syntax error`},
		{`{"op":"mutate","table":"Port","where":[],"mutations":[["trunks","insert",["set",[4094,4095]]],["trunks","+=",1]]}`, `constraint violation`},
		{`{"op":"mutate","table":"Port","where":[],"mutations":[["trunks","insert",["set",[1,2,3]]],["trunks","delete",2]]},{"op":"select","table":"Port","where":[["trunks","includes",["set",[1,3]]],["trunks","excludes",["set",[2]]]],"columns":["trunks"]}`, `[{"count":1},{"rows":[{"trunks":["set",[1,3]]}]}]`},
		{`{"op":"mutate","table":"Port","where":[],"mutations":[["external_ids","insert",["map",[["a","1"],["b","2"],["c","3"]]]],["external_ids","delete",["set",["a"]]],["external_ids","delete",["map",[["b","2"],["c","0"]]]]]},{"op":"select","table":"Port","where":[],"columns":["external_ids"]}`, `[{"count":1},{"rows":[{"external_ids":["map",[["c","3"]]]}]}]`},
		{`{"op":"select","table":"Port","where":[["tag",">",1]]}`, `[{"rows":[]}]`},
		{`{"op":"select","table":"Port","where":[["name",">","a"]]}`, `syntax error`},
		{`{"op":"select","table":"Port","where":[["name","~","a"]]}`, `unknown function`},
		{`{"op":"delete","table":"Port","where":[]}`, `referential integrity violation`},
		{`{"op":"delete","table":"Bridge","where":[]},{"op":"update","table":"Open_vSwitch","where":[],"row":{"bridges":["set",[]]}}`, `[{"count":1},{"count":1}]`},
	} {
		d := newSwitch(t)
		before := state(d)
		got := execute(t, d, c.operations)
		if strings.HasPrefix(c.want, "[") && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.operations, got, c.want)
		}
		if !strings.HasPrefix(c.want, "[") && state(d) != before {
			t.Errorf("%s failed, and changed the rows: %s", c.operations, state(d))
		}
		checkInvariants(t, d)
	}
}

// checkInvariants checks the invariants of doc.go: references and their counts, rows of tables that
// are not roots, and indexes.
func checkInvariants(t *testing.T, d *Database) {
	t.Helper()
	counts := map[datum.ID]int{}
	for _, rows := range d.tables {
		for _, r := range rows {
			eachRef(r, func(_ int, to *datum.Base, id datum.ID) {
				if d.tables[d.mustTable(to.Table)][id] == nil {
					t.Errorf("a row of %s refers to a row of %s that is not there", r.Table.Name, to.Table)
				}
				if !to.Weak {
					counts[id]++
				}
			})
		}
	}
	if fmt.Sprint(counts) != fmt.Sprint(d.refs) {
		t.Errorf("the counts of references are %v, want %v", d.refs, counts)
	}
	keys := 0
	for table, rows := range d.tables {
		for id, r := range rows {
			if !table.Root && counts[id] == 0 {
				t.Errorf("nothing refers to a row of %s", table.Name)
			}
			keys += len(keysOf(r))
		}
	}
	if keys != len(d.unique) {
		t.Errorf("the indexes have %d keys, want %d", len(d.unique), keys)
	}
}

// TestGarbage: rows go with the last reference to them, and what they refer to goes with them.
func TestGarbage(t *testing.T) {
	d := newSwitch(t)
	execute(t, d, `{"op":"insert","table":"Mirror","row":{"name":"m"},"uuid-name":"m"},
		{"op":"mutate","table":"Bridge","where":[],"mutations":[["mirrors","insert",["set",[["named-uuid","m"]]]]]}`)
	execute(t, d, `{"op":"insert","table":"Interface","row":{"name":"p1"},"uuid-name":"i"},
		{"op":"insert","table":"Port","row":{"name":"p1","interfaces":["named-uuid","i"]},"uuid-name":"p"},
		{"op":"update","table":"Mirror","where":[],"row":{"output_port":["named-uuid","p"]}},
		{"op":"mutate","table":"Bridge","where":[],"mutations":[["ports","insert",["named-uuid","p"]]]}`)
	if got := execute(t, d, `{"op":"select","table":"Mirror","where":[["output_port","!=",["set",[]]]],"columns":["name"]}`); got != `[{"rows":[{"name":"m"}]}]` {
		t.Errorf("the mirror has no port: %s", got)
	}
	port := execute(t, d, `{"op":"select","table":"Port","where":[["name","==","p1"]],"columns":["_uuid"]}`)
	id := port[strings.Index(port, `["uuid"`) : strings.Index(port, `]`)+1]
	execute(t, d, `{"op":"mutate","table":"Bridge","where":[],"mutations":[["ports","delete",`+id+`]]}`)
	for table, want := range map[string]int{"Port": 1, "Interface": 1, "Mirror": 1} {
		if n := len(d.tables[d.mustTable(table)]); n != want {
			t.Errorf("%d rows of %s are left, want %d", n, table, want)
		}
	}
	if got := execute(t, d, `{"op":"select","table":"Mirror","where":[],"columns":["output_port"]}`); got != `[{"rows":[{"output_port":["set",[]]}]}]` {
		t.Errorf("the mirror keeps a port that is gone: %s", got)
	}
	checkInvariants(t, d)
	execute(t, d, `{"op":"delete","table":"Open_vSwitch","where":[]}`)
	if s := state(d); s != "{}" {
		t.Errorf("rows are left: %s", s)
	}
	checkInvariants(t, d)
}

// TestIndexes: two rows cannot have the same name, except if one takes it over in the same
// transaction.
func TestIndexes(t *testing.T) {
	d := newSwitch(t)
	const port = `{"op":"insert","table":"Interface","row":{"name":"%s"},"uuid-name":"i"},
		{"op":"insert","table":"Port","row":{"name":"p0","interfaces":["named-uuid","i"]},"uuid-name":"p"},`
	const beside = `{"op":"mutate","table":"Bridge","where":[],"mutations":[["ports","insert",["named-uuid","p"]]]}`
	const instead = `{"op":"update","table":"Bridge","where":[],"row":{"ports":["named-uuid","p"]}}`
	before := state(d)
	if got := execute(t, d, fmt.Sprintf(port, "x")+beside); !strings.Contains(got, "constraint violation") || state(d) != before {
		t.Errorf("a second port p0: %s", got)
	}
	if got := execute(t, d, fmt.Sprintf(port, "p0")+instead); strings.Contains(got, "error") {
		t.Errorf("p0 in the place of p0: %s", got)
	}
	checkInvariants(t, d)
}

// TestWait: an operation waits until its condition holds, or until its timeout passes.
func TestWait(t *testing.T) {
	d := newSwitch(t)
	wait, err := jsonrpc.Decode([]byte(`[{"op":"wait","table":"Bridge","where":[],"columns":["fail_mode"],"until":"==","rows":[{"fail_mode":"secure"}],"timeout":1000},
		{"op":"update","table":"Bridge","where":[],"row":{"datapath_type":"done"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	o := d.Execute(wait.([]any), Caller{Waited: 400 * time.Millisecond})
	if o.Retry == nil || o.Left != 600*time.Millisecond {
		t.Fatalf("%+v", o)
	}
	if late := d.Execute(wait.([]any), Caller{Waited: time.Second}); !strings.Contains(fmt.Sprint(late.Results), "timed out") {
		t.Errorf("%v", late.Results)
	}
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"secure"}}`)
	<-o.Retry // the commit closes it
	if o = d.Execute(wait.([]any), Caller{}); o.Retry != nil || len(o.Results) != 2 {
		t.Errorf("%+v", o)
	}
	if got := execute(t, d, `{"op":"select","table":"Bridge","where":[],"columns":["datapath_type"]}`); !strings.Contains(got, "done") {
		t.Error(got)
	}
}

// open opens a database in a file.
func open(t *testing.T, path string) (*Database, int64) {
	t.Helper()
	d, cut, err := Open(path, schema.OpenVSwitch())
	if err != nil {
		t.Fatal(err)
	}
	return d, cut
}

// TestRestart: the rows are there after a restart, columns that are ephemeral are not, and a
// torn record at the end is cut at each of its bytes.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf.db")
	d, _ := open(t, path)
	fill(t, d)
	first := state(d)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, d, `{"op":"update","table":"Interface","where":[],"row":{"ofport":7,"link_state":"up"}},{"op":"comment","comment":"a\nb"}`)
	second := strings.Replace(state(d), `"link_state":"up",`, "", 1)
	execute(t, d, `{"op":"update","table":"Interface","where":[],"row":{"link_state":"down"}},{"op":"commit","durable":true}`)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole); n <= len(text); n++ {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		d, cut := open(t, path)
		want, wantCut := first, int64(n-len(whole))
		if n == len(text) {
			want, wantCut = second, 0
		}
		if got := state(d); got != want || cut != wantCut {
			t.Fatalf("after %d of %d bytes, %d cut: %s, want %s", n, len(text), cut, got, want)
		}
		execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"secure"}}`)
		want = state(d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d, cut = open(t, path)
		if got := state(d); got != want || cut != 0 {
			t.Fatalf("after a commit behind byte %d, %d cut: %s, want %s", n, cut, got, want)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamage: a file that is damaged elsewhere than at its end is refused.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf.db")
	d, _ := open(t, path)
	fill(t, d)
	execute(t, d, `{"op":"update","table":"Interface","where":[],"row":{"ofport":7}}`)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"name":"br0"`, `"name":"br1"`, "damaged, and whole ones follow"},
		{`"name":"Open_vSwitch"`, `"name":"Open_vSwitcx"`, "not a standalone database"},
		{"OVSDB JSON", "OVSDB CLUSTER", "not a standalone database"},
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(path, schema.OpenVSwitch()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}

// TestCompaction: a log that has grown is rewritten with each row once, and gives the same rows.
func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf.db")
	d, _ := open(t, path)
	fill(t, d)
	long := strings.Repeat("x", 1<<16)
	most := int64(0)
	for i := range 40 {
		execute(t, d, fmt.Sprintf(`{"op":"update","table":"Bridge","where":[],"row":{"external_ids":["map",[["k","%d%s"]]]}}`, i, long))
		most = max(most, d.log.size)
	}
	if d.log.size == most || most > 2*minCompaction {
		t.Errorf("the log has %d bytes, and had %d", d.log.size, most)
	}
	want := state(d)
	if err := d.Compact(); err != nil {
		t.Fatal(err)
	}
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"external_ids":["map",[]]}}`)
	execute(t, d, fmt.Sprintf(`{"op":"update","table":"Bridge","where":[],"row":{"external_ids":["map",[["k","39%s"]]]}}`, long))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, cut := open(t, path)
	defer d.Close()
	if state(d) != want || cut != 0 {
		t.Errorf("after a restart the rows differ, %d bytes cut", cut)
	}
}

// TestObserver: an observer sees the rows and then each change, and none of a transaction that
// failed or changed nothing.
func TestObserver(t *testing.T) {
	d := newSwitch(t)
	var told [][]Change
	rows := 0
	stop := d.Observe(func(v View) {
		for range v.Named("Bridge") {
			rows++
		}
	}, func(c []Change) { told = append(told, c) })
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"secure"}}`)
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"secure"}}`)
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"standalone"}},{"op":"abort"}`)
	execute(t, d, `{"op":"insert","table":"Interface","row":{"name":"loose"}}`)
	if rows != 1 || len(told) != 1 || len(told[0]) != 1 || told[0][0].New.Text("fail_mode") != "secure" || told[0][0].Old.Text("fail_mode") != "" {
		t.Errorf("%d rows, then %v", rows, told)
	}
	stop()
	execute(t, d, `{"op":"update","table":"Bridge","where":[],"row":{"fail_mode":"standalone"}}`)
	if len(told) != 1 {
		t.Errorf("%v", told)
	}
}

// TestTransact: Transact commits all changes of a function, or none.
func TestTransact(t *testing.T) {
	d := newSwitch(t)
	before := state(d)
	err := d.Transact("", func(tx *Tx) error {
		if _, err := tx.Insert("QoS", map[string]datum.Datum{"type": datum.One(datum.Text("x"))}); err != nil {
			return err
		}
		for r := range tx.Rows("Interface") {
			if err := tx.Set("Interface", r.ID(), map[string]datum.Datum{"ofport_request": datum.One(datum.Int(0))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "ofport_request") || state(d) != before {
		t.Errorf("%v", err)
	}
	err = d.Transact("", func(tx *Tx) error {
		for r := range tx.Rows("QoS") {
			tx.remove(r.Table, r.ID())
		}
		return tx.Set("Bridge", datum.NewID(), nil)
	})
	if err == nil || state(d) != before {
		t.Errorf("%v", err)
	}
}
