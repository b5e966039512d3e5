package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// deadline bounds how long an answer may take before a test fails.
const deadline = 30 * time.Second

// serve runs a server of an empty Open_vSwitch and returns its socket.
func serve(t testing.TB, limits Limits) (socket string, d *store.Database) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ovsdb") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d = store.New(schema.OpenVSwitch())
	s, err := New(slog.New(slog.DiscardHandler), limits, d)
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "db.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket, d
}

// caller is a client that sends and receives text.
type caller struct {
	t  testing.TB
	nc net.Conn
	r  *json.Decoder
}

func dial(t testing.TB, socket string) *caller {
	t.Helper()
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &caller{t, nc, json.NewDecoder(nc)}
}

// send sends a request; the parameters are the members of a JSON array.
func (c *caller) send(id, method, params string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.nc, `{"id":%s,"method":%q,"params":[%s]}`, id, method, params); err != nil {
		c.t.Fatal(err)
	}
}

// uuids are what differs from run to run.
var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// next is the next message, with UUIDs as U and without the details of errors.
func (c *caller) next() string {
	c.t.Helper()
	if err := c.nc.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		c.t.Fatal(err)
	}
	var v map[string]any
	if err := c.r.Decode(&v); err != nil {
		return err.Error()
	}
	if v["method"] == nil && v["error"] == nil {
		return asText(v["result"])
	}
	if e, ok := v["error"].(map[string]any); ok {
		return "error " + asText(e["error"])
	}
	if v["error"] != nil {
		return "error " + asText(v["error"])
	}
	return fmt.Sprint(v["method"], " ", asText(v["params"]))
}

var details = regexp.MustCompile(`"details":"([^"\\]|\\.)*",`)

func asText(v any) string {
	b, err := jsonrpc.Encode(v)
	if err != nil {
		return err.Error()
	}
	return details.ReplaceAllString(uuids.ReplaceAllString(string(b), "U"), "")
}

// call sends a request and returns the next message.
func (c *caller) call(method, params string) string {
	c.t.Helper()
	c.send("1", method, params)
	return c.next()
}

const (
	insertRoot = `"Open_vSwitch",{"op":"insert","table":"Open_vSwitch","row":{"external_ids":["map",[["a","1"],["b","2"]]]}}`
	change     = `"Open_vSwitch",{"op":"update","table":"Open_vSwitch","where":[],"row":{"external_ids":["map",[["b","3"],["c","4"]]],"ovs_version":"3","datapath_types":["set",["x","y"]]}}`
	unset      = `"Open_vSwitch",{"op":"update","table":"Open_vSwitch","where":[],"row":{"ovs_version":["set",[]],"datapath_types":["set",["y","z"]],"next_cfg":5}}`
	remove     = `"Open_vSwitch",{"op":"delete","table":"Open_vSwitch","where":[]}`
	columns    = `["external_ids","ovs_version","datapath_types"]`
)

// TestRequests: the replies to single requests.
func TestRequests(t *testing.T) {
	socket, _ := serve(t, DefaultLimits)
	c := dial(t, socket)
	for _, e := range []struct{ method, params, want string }{
		{"echo", `"x",[1]`, `["x",[1]]`},
		{"list_dbs", ``, `["Open_vSwitch","_Server"]`},
		{"get_server_id", ``, `"U"`},
		{"set_db_change_aware", `true`, `{}`},
		{"set_db_change_aware", `1`, `error "syntax error"`},
		{"nothing", ``, `error "unknown method"`},
		{"get_schema", `"none"`, `error "unknown database"`},
		{"get_schema", ``, `error "syntax error"`},
		{"get_schema", `{}`, `error "syntax error"`},
		{"transact", `"none",{"op":"abort"}`, `error "unknown database"`},
		{"transact", `"Open_vSwitch"`, `[]`},
		{"transact", `"_Server",{"op":"delete","table":"Database","where":[]}`, `[{"error":"not allowed"}]`},
		{"transact", `"_Server",{"op":"select","table":"Database","where":[["name","==","Open_vSwitch"]],"columns":["model","leader","connected","cid"]}`, `[{"rows":[{"cid":["set",[]],"connected":true,"leader":true,"model":"standalone"}]}]`},
		{"transact", insertRoot, `[{"uuid":["uuid","U"]}]`},
		{"transact", `"Open_vSwitch",{"op":"comment","comment":"x"},{"op":"insert","table":"Port","row":{"name":"p"}}`, `[{},{"uuid":["uuid","U"]},{"error":"referential integrity violation"}]`},
		{"transact", `"Open_vSwitch",{"op":"abort"},{"op":"abort"}`, `[{"error":"aborted"},null]`},
		{"monitor", `"Open_vSwitch",1`, `error "syntax error"`},
		{"monitor", `"Open_vSwitch",1,[]`, `error "syntax error"`},
		{"monitor", `"Open_vSwitch",1,{"None":{}}`, `error "unknown table"`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"columns":["none"]}}`, `error "unknown column"`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"columns":["name","name"]}}`, `error "syntax error"`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"where":[]}}`, `error "syntax error"`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"select":{"sometimes":true}}}`, `error "syntax error"`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"columns":["name"]}}`, `{}`},
		{"monitor", `"Open_vSwitch",1,{"Port":{"columns":["name"]}}`, `error "syntax error"`},
		{"monitor_cond_change", `1,2,{}`, `error "unknown monitor"`},
		{"monitor_cancel", `1`, `{}`},
		{"monitor_cancel", `1`, `error "unknown monitor"`},
		{"cancel", `1`, `error "unknown method"`},
		{"unlock", `"l"`, `error "syntax error"`},
		{"lock", `7`, `error "syntax error"`},
	} {
		if got := c.call(e.method, e.params); got != e.want {
			t.Errorf("%s %s: %s, want %s", e.method, e.params, got, e.want)
		}
	}
}

// TestMonitors: each dialect tells the rows that are there, and then each change before the
// transaction's reply.
func TestMonitors(t *testing.T) {
	for _, e := range []struct {
		method, requests string
		want             []string // the reply, and the updates of the four transactions
	}{
		{"monitor", `{"Open_vSwitch":{"columns":` + columns + `}}`, []string{
			`{"Open_vSwitch":{"U":{"new":{"datapath_types":["set",[]],"external_ids":["map",[["a","1"],["b","2"]]],"ovs_version":["set",[]]}}}}`,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"datapath_types":["set",["x","y"]],"external_ids":["map",[["b","3"],["c","4"]]],"ovs_version":"3"},"old":{"datapath_types":["set",[]],"external_ids":["map",[["a","1"],["b","2"]]],"ovs_version":["set",[]]}}}}]`,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"datapath_types":["set",["y","z"]],"external_ids":["map",[["b","3"],["c","4"]]],"ovs_version":["set",[]]},"old":{"datapath_types":["set",["x","y"]],"ovs_version":"3"}}}}]`,
			`update ["m",{"Open_vSwitch":{"U":{"old":{"datapath_types":["set",["y","z"]],"external_ids":["map",[["b","3"],["c","4"]]],"ovs_version":["set",[]]}}}}]`,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"datapath_types":["set",[]],"external_ids":["map",[["a","1"],["b","2"]]],"ovs_version":["set",[]]}}}}]`,
		}},
		{"monitor", `{"Open_vSwitch":[{"columns":["ovs_version"],"select":{"initial":false,"delete":false}},{"columns":["datapath_types"],"select":{"initial":false,"modify":false,"insert":false,"delete":false}}]}`, []string{
			`{}`,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"ovs_version":"3"},"old":{"ovs_version":["set",[]]}}}}]`,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"ovs_version":["set",[]]},"old":{"ovs_version":"3"}}}}]`,
			``,
			`update ["m",{"Open_vSwitch":{"U":{"new":{"ovs_version":["set",[]]}}}}]`,
		}},
		{"monitor_cond", `{"Open_vSwitch":[{"columns":` + columns + `}]}`, []string{
			`{"Open_vSwitch":{"U":{"initial":{"external_ids":["map",[["a","1"],["b","2"]]]}}}}`,
			`update2 ["m",{"Open_vSwitch":{"U":{"modify":{"datapath_types":["set",["x","y"]],"external_ids":["map",[["a","1"],["b","3"],["c","4"]]],"ovs_version":"3"}}}}]`,
			`update2 ["m",{"Open_vSwitch":{"U":{"modify":{"datapath_types":["set",["x","z"]],"ovs_version":["set",[]]}}}}]`,
			`update2 ["m",{"Open_vSwitch":{"U":{"delete":null}}}]`,
			`update2 ["m",{"Open_vSwitch":{"U":{"insert":{"external_ids":["map",[["a","1"],["b","2"]]]}}}}]`,
		}},
		{"monitor_cond_since", `{"Open_vSwitch":[{"columns":[]}]},"00000000-0000-0000-0000-000000000000"`, []string{
			`[false,"00000000-0000-0000-0000-000000000000",{"Open_vSwitch":{"U":{"initial":{}}}}]`,
			``, ``,
			`update3 ["m","00000000-0000-0000-0000-000000000000",{"Open_vSwitch":{"U":{"delete":null}}}]`,
			`update3 ["m","00000000-0000-0000-0000-000000000000",{"Open_vSwitch":{"U":{"insert":{}}}}]`,
		}},
		{"monitor_cond", `{"Open_vSwitch":[{"columns":["ovs_version"],"where":[["ovs_version","==","3"],["next_cfg",">",99]]}]}`, []string{
			`{}`,
			`update2 ["m",{"Open_vSwitch":{"U":{"insert":{"ovs_version":"3"}}}}]`,
			`update2 ["m",{"Open_vSwitch":{"U":{"delete":null}}}]`,
			``, ``,
		}},
	} {
		socket, _ := serve(t, DefaultLimits)
		c := dial(t, socket)
		c.call("transact", insertRoot)
		if got := c.call(e.method, `"Open_vSwitch","m",`+e.requests); got != e.want[0] {
			t.Errorf("%s %s:\n%s, want\n%s", e.method, e.requests, got, e.want[0])
		}
		for i, transaction := range []string{change, unset, remove, insertRoot} {
			got := c.call("transact", transaction)
			if want := e.want[i+1]; want != "" {
				if got != want {
					t.Errorf("%s %s, then %s:\n%s, want\n%s", e.method, e.requests, transaction, got, want)
				}
				got = c.next()
			}
			if !strings.HasPrefix(got, "[") {
				t.Errorf("%s: %s, want the reply", transaction, got)
			}
		}
	}
}

// TestConditionsChange: with new conditions, a monitor reports the rows that come and go.
func TestConditionsChange(t *testing.T) {
	socket, _ := serve(t, DefaultLimits)
	c := dial(t, socket)
	c.call("transact", insertRoot)
	for _, e := range []struct{ method, params, want, then string }{
		{"monitor_cond", `"Open_vSwitch",1,{"Open_vSwitch":[{"columns":["cur_cfg"],"where":[["cur_cfg","==",9],["cur_cfg","==",0]]}]}`, `{"Open_vSwitch":{"U":{"initial":{}}}}`, ""},
		{"monitor_cond_change", `1,2,{"Open_vSwitch":[{"where":[false]}]}`, `update2 [2,{"Open_vSwitch":{"U":{"delete":null}}}]`, `{}`},
		{"monitor_cond_change", `1,2,{}`, `error "unknown monitor"`, ""},
		{"monitor_cond_change", `2,2,{"Port":[{"where":[true]}]}`, `error "unknown table"`, ""},
		{"monitor_cond_change", `2,2,{"Open_vSwitch":[{"columns":[]}]}`, `error "syntax error"`, ""},
		{"transact", change, `[{"count":1}]`, ""},
		{"monitor_cond_change", `2,3,{"Open_vSwitch":[{"where":[["cur_cfg","<",1]]}]}`, `update2 [3,{"Open_vSwitch":{"U":{"insert":{}}}}]`, `{}`},
		{"monitor_cond_change", `3,3,{"Open_vSwitch":[{"where":[]}]}`, `{}`, ""},
		{"monitor_cancel", `3`, `{}`, ""},
		{"transact", remove, `[{"count":1}]`, ""},
	} {
		if got := c.call(e.method, e.params); got != e.want {
			t.Errorf("%s %s: %s, want %s", e.method, e.params, got, e.want)
		}
		if e.then != "" {
			if got := c.next(); got != e.then {
				t.Errorf("%s %s: then %s, want %s", e.method, e.params, got, e.then)
			}
		}
	}
}

// TestLocks: a lock has one owner. It goes to the next client when the owner unlocks it or is
// gone, and to a thief at once.
func TestLocks(t *testing.T) {
	socket, _ := serve(t, DefaultLimits)
	a, b, c := dial(t, socket), dial(t, socket), dial(t, socket)
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	const held = `"Open_vSwitch",{"op":"assert","lock":"l"}`
	check(a.call("lock", `"l"`), `{"locked":true}`)
	check(a.call("lock", `"l"`), `error "syntax error"`)
	check(b.call("lock", `"l"`), `{"locked":false}`)
	check(a.call("transact", held), `[{}]`)
	check(b.call("transact", held), `[{"error":"not owner"}]`)
	check(c.call("steal", `"l"`), `{"locked":true}`)
	check(a.next(), `stolen ["l"]`)
	check(a.call("transact", held), `[{"error":"not owner"}]`)
	check(c.call("unlock", `"l"`), `{}`)
	check(a.next(), `locked ["l"]`)
	if err := a.nc.Close(); err != nil {
		t.Fatal(err)
	}
	check(b.next(), `locked ["l"]`)
	check(b.call("transact", held), `[{}]`)
	check(b.call("unlock", `"l"`), `{}`)
	check(c.call("lock", `"l"`), `{"locked":true}`)
}

// TestWaiting: a transaction that waits is done by another client's transaction, ends with its
// time, or is canceled. Other requests are answered meanwhile.
func TestWaiting(t *testing.T) {
	limits := DefaultLimits
	limits.Transactions = 2
	socket, _ := serve(t, limits)
	a, b := dial(t, socket), dial(t, socket)
	const wait = `"Open_vSwitch",{"op":"wait","table":"Open_vSwitch","where":[],"columns":["next_cfg"],"until":"==","rows":[{"next_cfg":5}]%s},{"op":"comment","comment":"x"}`
	a.send("1", "transact", fmt.Sprintf(wait, ""))
	a.send("2", "transact", fmt.Sprintf(wait, `,"timeout":1`))
	if got := a.next(); got != `[{"error":"timed out"},null]` {
		t.Error(got)
	}
	a.send("3", "transact", fmt.Sprintf(wait, ""))
	a.send("4", "transact", fmt.Sprintf(wait, ""))
	if got := a.next(); got != `error "resources exhausted"` {
		t.Error(got)
	}
	if _, err := a.nc.Write([]byte(`{"id":null,"method":"cancel","params":[3]}`)); err != nil {
		t.Fatal(err)
	}
	if got := a.next(); got != `error "canceled"` {
		t.Error(got)
	}
	if got := a.call("echo", ``); got != `[]` {
		t.Error(got)
	}
	b.call("transact", insertRoot)
	b.call("transact", unset)
	if got := a.next(); got != `[{},{}]` {
		t.Error(got)
	}
}

// TestWaitingMakesRoom: once a client has the reply of a transaction that waited, it may send
// another.
func TestWaitingMakesRoom(t *testing.T) {
	limits := DefaultLimits
	limits.Transactions = 1
	socket, _ := serve(t, limits)
	c := dial(t, socket)
	const wait = `"Open_vSwitch",{"op":"wait","timeout":1,"table":"Open_vSwitch","where":[],"columns":["next_cfg"],"until":"==","rows":[{"next_cfg":5}]}`
	for range 300 {
		if got := c.call("transact", wait); got != `[{"error":"timed out"}]` {
			t.Fatal(got)
		}
	}
}

// TestStalledClient: a client that does not read its updates is disconnected, and others are not.
func TestStalledClient(t *testing.T) {
	limits := DefaultLimits
	limits.Outbox = 1 << 16
	socket, d := serve(t, limits)
	stalled, other := dial(t, socket), dial(t, socket)
	stalled.call("monitor", `"Open_vSwitch",1,{"Open_vSwitch":{"columns":["external_ids"]}}`)
	other.call("transact", insertRoot)
	for i := range 100 {
		text := fmt.Sprintf(`"Open_vSwitch",{"op":"update","table":"Open_vSwitch","where":[],"row":{"external_ids":["map",[["k","%d%s"]]]}}`, i, strings.Repeat("x", 1<<14))
		if got := other.call("transact", text); got != `[{"count":1}]` {
			t.Fatal(got)
		}
	}
	for got := ""; ; got = stalled.next() { // what the kernel kept, and then the end
		if !strings.HasPrefix(got, "update") && got != "" {
			if got != "EOF" && !strings.Contains(got, "reset") && !strings.Contains(got, "unexpected EOF") {
				t.Errorf("%.100s", got)
			}
			break
		}
	}
	d.Read(func(v store.View) {}) // the lock is free
}

// TestLimits: what a client may hold is bounded, and messages that are too long or wrong end
// its connection.
func TestLimits(t *testing.T) {
	limits := Limits{Clients: 2, Message: 4096, Outbox: 1 << 20, Monitors: 2, Transactions: 1, Locks: 2}
	socket, _ := serve(t, limits)
	c := dial(t, socket)
	for i, want := range []string{`{}`, `{}`, `error "resources exhausted"`} {
		if got := c.call("monitor", fmt.Sprintf(`"Open_vSwitch",%d,{}`, i)); got != want {
			t.Errorf("monitor %d: %s, want %s", i, got, want)
		}
	}
	for i, want := range []string{`{"locked":true}`, `{"locked":true}`, `error "resources exhausted"`} {
		if got := c.call("lock", fmt.Sprintf(`"%d"`, i)); got != want {
			t.Errorf("lock %d: %s, want %s", i, got, want)
		}
	}
	for _, text := range []string{`garbage`, `[]`, `{"id":1}`, `{"id":1,"method":"echo","params":["` + strings.Repeat("x", 9000) + `"]}`,
		`{"id":1,"method":"echo","params":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`} {
		bad := dial(t, socket)
		_, _ = bad.nc.Write([]byte(text)) // the server may close before it has read all
		if got := bad.next(); got != "EOF" && !strings.Contains(got, "reset") {
			t.Errorf("%.40s: %s", text, got)
		}
		_ = bad.nc.Close()
		for { // its place is free when the server has seen the end
			again := dial(t, socket)
			again.send("1", "echo", "")
			got := again.next()
			_ = again.nc.Close()
			if got == `[]` {
				break
			}
		}
	}
	second := dial(t, socket)
	for second.call("echo", "") != `[]` {
		second = dial(t, socket)
	}
	if got := dial(t, socket).next(); got != "EOF" {
		t.Errorf("a third client: %s", got)
	}
	if got := c.call("echo", ``); got != `[]` {
		t.Error(got)
	}
}

// FuzzClient: whatever a client sends, the server serves the next one.
func FuzzClient(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"monitor_cond_since","params":["Open_vSwitch",["a"],{"Port":[{"columns":["name"],"where":[["name","==","x"]]}]},"0"]}{"id":1,"method":"monitor_cond_change","params":[["a"],2,{"Port":{"where":[true]}}]}`,
		`{"id":1,"method":"transact","params":["Open_vSwitch",{"op":"wait","table":"Port","where":[],"until":"!=","rows":[]}]}{"id":null,"method":"cancel","params":[1]}`,
		`{"id":1,"method":"lock","params":["a"]}{"id":1,"method":"steal","params":["a"]}{"id":1,"method":"unlock","params":["a"]}`,
		`{"id":1,"method":"get_schema","params":["_Server"]}`,
	} {
		f.Add([]byte(s))
	}
	socket, _ := serve(f, DefaultLimits)
	f.Fuzz(func(t *testing.T, b []byte) {
		c := dial(t, socket)
		_, _ = c.nc.Write(b)
		_ = c.nc.Close()
		if got := dial(t, socket).call("echo", ``); got != `[]` {
			t.Error(got)
		}
	})
}
