package replica

import (
	"testing"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// FuzzUpdates gives any message of a server to a session, and its updates to a copy. A copy that
// refuses them is as before.
func FuzzUpdates(f *testing.F) {
	const id = "00000000-0000-4000-8000-000000000001"
	root := `{"Open_vSwitch":{"` + id + `":{"new":{"next_cfg":3,"external_ids":["map",[["a","b"]]]}}}}`
	for _, updates := range []string{
		root, `{"Open_vSwitch":{"` + id + `":{"old":{"next_cfg":3}}}}`,
		`{"Open_vSwitch":{"` + id + `":{"new":{"bridges":["uuid","00000000-0000-4000-8000-000000000002"]}}}}`,
		`{"Open_vSwitch":{"x":{}}}`, `{"Nothing":{}}`, `{"Bridge":{"` + id + `":{"new":{"name":5}}}}`,
	} {
		f.Add([]byte(`{"id":null,"method":"update","params":["antrail",` + updates + `]}`))
	}
	f.Add([]byte(`{"id":"1","result":{},"error":null}`))
	f.Add([]byte(`{"id":"x","method":"stolen","params":["ovs_vswitchd"]}`))
	before, err := jsonrpc.Decode([]byte(root))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := jsonrpc.Parse(b)
		if err != nil || m.Method == "echo" {
			return
		}
		n := &session{updates: make(chan map[string]any, 1), waiting: map[string]chan *jsonrpc.Message{"1": make(chan *jsonrpc.Message, 1)}}
		if n.handle(m) != nil || len(n.updates) == 0 {
			return
		}
		db := store.New(schema.OpenVSwitch())
		if err := db.Follow(before.(map[string]any), true); err != nil {
			t.Fatal(err)
		}
		rows, cells := db.Size()
		if err := db.Follow(<-n.updates, false); err != nil {
			if r, c := db.Size(); r != rows || c != cells {
				t.Fatalf("%v, but there are %d rows and %d cells, before %d and %d", err, r, c, rows, cells)
			}
		}
	})
}

// TestSocket: the server's place.
func TestSocket(t *testing.T) {
	for text, want := range map[string]string{"unix:/run/db.sock": "/run/db.sock", "unix:": "", "tcp:127.0.0.1:6640": "", "/run/db.sock": ""} {
		got, err := Socket(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
