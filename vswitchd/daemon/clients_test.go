package daemon

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// need skips a test on a machine without a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// idl is a client of Open vSwitch's Python bindings: it watches all columns, adds a bridge and
// waits until it sees it, its datapath id and the new configuration's number.
const idl = `
import sys, ovs.db.idl, ovs.poller, ovs.vlog
helper = ovs.db.idl.SchemaHelper(sys.argv[2])
helper.register_all()
idl = ovs.db.idl.Idl(sys.argv[1], helper)
def until(done):
    seqno = None
    while not done():
        if seqno == idl.change_seqno:
            poller = ovs.poller.Poller()
            idl.wait(poller)
            poller.block()
        seqno = idl.change_seqno
        idl.run()
until(lambda: idl.has_ever_connected() and len(idl.tables["Open_vSwitch"].rows))
root = next(iter(idl.tables["Open_vSwitch"].rows.values()))
txn = ovs.db.idl.Transaction(idl)
iface = txn.insert(idl.tables["Interface"]); iface.name = "idl0"; iface.type = "internal"
port = txn.insert(idl.tables["Port"]); port.name = "idl0"; port.interfaces = [iface]
br = txn.insert(idl.tables["Bridge"]); br.name = "idl0"; br.datapath_type = "dummy"; br.ports = [port]; br.external_ids = {"a": "1", "b": "2"}
root.addvalue("bridges", br)
root.increment("next_cfg")
print(txn.commit_block())
number = txn.get_increment_new_value()
until(lambda: root.cur_cfg >= number)
find = lambda table: [r for r in idl.tables[table].rows.values() if r.name == "idl0"]
print(len(find("Bridge")[0].datapath_id[0]), find("Interface")[0].ofport, find("Interface")[0].link_state, find("Bridge")[0].external_ids)
txn = ovs.db.idl.Transaction(idl)
find("Bridge")[0].delkey("external_ids", "a")
print(txn.commit_block(), find("Bridge")[0].external_ids)
txn = ovs.db.idl.Transaction(idl)
find("Interface")[0].ofport_request = 5
find("Bridge")[0].verify("name")
print(txn.commit_block())
print(find("Interface")[0].ofport_request)
`

// TestPythonIDL: the Python bindings of Open vSwitch, which speak monitor_cond_since, see what
// they wrote and what the switch made of it.
func TestPythonIDL(t *testing.T) {
	python := need(t, "/usr/bin/python3")
	if err := exec.Command(python, "-c", "import ovs.db.idl").Run(); err != nil {
		t.Skipf("python3-openvswitch is not installed: %v", err)
	}
	f := startFront(t)
	file := filepath.Join(f.dir, "schema")
	if err := os.WriteFile(file, []byte(schema.OpenVSwitch().Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, code := tool(t, f.dir, python, "-c", idl, "unix:"+f.dir+"/db.sock", file)
	want := "success\n16 [65534] ['up'] {'a': '1', 'b': '2'}\nsuccess {'b': '2'}\nsuccess\n[5]\n"
	if got != want || code != 0 {
		t.Errorf("code %d:\n%s\nwant:\n%s", code, got, want)
	}
}

// TestMonitorTool: ovsdb-client monitor prints the same changes for antrail's database as for
// that of Open vSwitch.
func TestMonitorTool(t *testing.T) {
	ovs := ovstest.Start(t)
	f := startFront(t)
	for _, dir := range []string{ovs.Dir, f.dir} {
		tool(t, dir, "ovs-vsctl", "--may-exist", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail-mode=secure", "protocols=OpenFlow13")
	}
	for _, method := range []string{"monitor", "monitor-cond"} {
		want, got := monitored(t, ovs.Dir, method), monitored(t, f.dir, method)
		if got != want {
			t.Errorf("ovsdb-client %s:\n%s\nOpen vSwitch:\n%s", method, got, want)
		}
	}
}

// monitored is what ovsdb-client prints while a bridge changes, up to the mark in the last
// change.
func monitored(t *testing.T, dir, method string) string {
	t.Helper()
	args := []string{"--format=json", method, "unix:" + dir + "/db.sock", "Open_vSwitch"}
	if method == "monitor-cond" {
		args = append(args, `[["name","==","br0"],["name","==","brm"]]`)
	}
	cmd := exec.Command("ovsdb-client", append(args, "Bridge", "name", "fail_mode", "external_ids", "protocols")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines, text := bufio.NewScanner(out), ""
	lines.Scan() // the rows that are there
	text += lines.Text() + "\n"
	for _, words := range []string{
		"add-br brm -- set bridge brm datapath_type=dummy",
		"set bridge brm external_ids:a=1 external_ids:b=2 fail_mode=standalone",
		"set bridge brm external_ids:a=3 protocols=OpenFlow13 -- remove bridge brm external_ids b -- clear bridge brm fail_mode",
		"del-br brm",
		"set bridge br0 external_ids:end=" + method,
	} {
		tool(t, dir, "ovs-vsctl", strings.Fields(words)...)
	}
	for !strings.Contains(text, `"end","`+method) && lines.Scan() {
		text += lines.Text() + "\n"
	}
	return stable(text)
}

// TestDatabasesOfOpenVSwitch: antrail opens a database file of ovsdb-server, and ovsdb-server opens
// one of antrail.
func TestDatabasesOfOpenVSwitch(t *testing.T) {
	ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 3})
	const rows = "--columns=name,type,ofport,options list Interface"
	want, _ := tool(t, ovs.Dir, "ovs-vsctl", strings.Fields(rows)...)
	text, err := os.ReadFile(filepath.Join(ovs.Dir, "conf.db"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "conf.db")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f := startFrontIn(t, dir)
	tool(t, dir, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:sync=1") // waits for the switch
	got, _ := tool(t, dir, "ovs-vsctl", strings.Fields(rows)...)
	if got = strings.ReplaceAll(got, ovs.Dir, "RUNDIR"); sorted(stable(got)) != sorted(stable(want)) {
		t.Errorf("antrail has:\n%s\nOpen vSwitch had:\n%s", got, want)
	}
	backup, code := tool(t, dir, "ovsdb-client", "backup", "unix:"+dir+"/db.sock")
	if code != 0 {
		t.Fatal(backup)
	}
	f.stop()
	for name, text := range map[string]string{"conf.db": "", "backup": strings.ReplaceAll(backup, "RUNDIR", dir)} {
		file := filepath.Join(dir, name)
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, code := tool(t, dir, "ovsdb-tool", "query", file, `["Open_vSwitch",{"op":"select","table":"Interface","where":[["name","==","p1"]],"columns":["ofport","type"]}]`)
		if want := `[{"rows":[{"ofport":3,"type":"dummy"}]}]` + "\n"; got != want || code != 0 {
			t.Errorf("ovsdb-tool query %s: %s, want %s", name, got, want)
		}
	}
	if got, code := tool(t, dir, "ovsdb-tool", "show-log", "-m", path); code != 0 || !strings.Contains(got, "external_ids:sync=1") {
		t.Errorf("ovsdb-tool show-log: %s", got)
	}
}

// TestRestartedFront: a front that is started again has the bridges and ports, and makes the
// switch again.
func TestRestartedFront(t *testing.T) {
	need(t, "ovs-vsctl")
	f := startFront(t)
	tool(t, f.dir, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "--",
		"add-port", "br0", "a", "--", "set", "Interface", "a", "type=dummy", "ofport_request=9")
	f.stop()
	f = startFrontIn(t, f.dir)
	got, _ := tool(t, f.dir, "ovs-vsctl", "--timeout=20", "wait-until", "Interface", "a", "link_state=up", "--", "get", "Interface", "a", "ofport")
	if got != "9\n" || fmt.Sprint(f.sw.Names()) != "[br0/a br0/br0]" {
		t.Errorf("%q, %v", got, f.sw.Names())
	}
}

// placeholder stands in recorded requests for the UUID of a row: @TABLE/NAME@.
var placeholder = regexp.MustCompile(`@(\w+)/([\w.-]*)@`)

// TestRecordedRequests sends what ovs-vsctl 3.1 sent to ovsdb-server, and compares the replies.
// It needs no tool: testdata/vsctl.txt has the requests and the results that ovsdb-server gave.
func TestRecordedRequests(t *testing.T) {
	text, err := os.ReadFile("testdata/vsctl.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := startFront(t)
	c, err := net.Dial("unix", filepath.Join(f.dir, "db.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	replies, sent := json.NewDecoder(c), 0
	for block := range strings.SplitSeq(string(text), "\n\n") {
		words, rest, _ := strings.Cut(strings.TrimSpace(block), "\n")
		request, want, _ := strings.Cut(rest, "\n")
		if strings.HasPrefix(words, "#") {
			continue
		}
		sent++
		request = placeholder.ReplaceAllStringFunc(request, f.uuidOf)
		if _, err := fmt.Fprintf(c, `{"id":%d,%s}`, sent, request); err != nil {
			t.Fatal(err)
		}
		if got := canonical(replyTo(t, replies, sent)); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	if sent < 15 {
		t.Errorf("only %d requests were sent", sent)
	}
}

// replyTo is the result in the reply to a request. Updates before it are left out.
func replyTo(t *testing.T, replies *json.Decoder, id int) any {
	t.Helper()
	for {
		var m struct {
			ID            *int
			Result, Error any
		}
		if err := replies.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.ID != nil && *m.ID == id {
			return cmp.Or(m.Result, m.Error)
		}
	}
}

// canonical is a reply as text that is the same for each server: UUIDs and details of errors
// are left out, and rows are in order.
func canonical(v any) string {
	var plain func(any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case string:
			return stable(v)
		case []any:
			for i := range v {
				v[i] = plain(v[i])
			}
		case map[string]any:
			if v["error"] != nil {
				return map[string]any{"error": v["error"]}
			}
			var rows []string
			for k := range v {
				v[k] = plain(v[k])
				if stable(k) == "UUID" {
					rows = append(rows, canonical(v[k]))
				}
			}
			if slices.Sort(rows); rows != nil {
				return json.RawMessage("[" + strings.Join(rows, ",") + "]")
			}
		}
		return v
	}
	b, err := json.Marshal(plain(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// uuidOf is the UUID of the row that a placeholder names: the only one if the name is empty.
func (f *front) uuidOf(of string) (uuid string) {
	m := placeholder.FindStringSubmatch(of)
	f.d.db.Read(func(v store.View) {
		for r := range v.Named(m[1]) {
			if m[2] == "" || r.Text("name") == m[2] {
				uuid = r.ID().String()
			}
		}
	})
	if _, err := datum.ParseID(uuid); err != nil {
		f.t.Errorf("%s: %v", of, err)
	}
	return uuid
}
