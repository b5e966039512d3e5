package bridge_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/bridgetest"
	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// silent logs nothing.
var silent = slog.New(slog.DiscardHandler)

// table is a database with a reconciler whose rounds the test runs.
type table struct {
	t    *testing.T
	path string
	db   *store.Database
	sw   *bridgetest.Switch
	r    *bridge.Reconciler
}

func newTable(t *testing.T) *table {
	x := openTable(t, filepath.Join(t.TempDir(), "conf.db"))
	x.change(func(tx *store.Tx) error {
		_, err := tx.Insert("Open_vSwitch", nil)
		return err
	})
	return x
}

// openTable is a reconciler and a switch that come after those that wrote a file.
func openTable(t *testing.T, path string) *table {
	t.Helper()
	db, _, err := store.Open(path, schema.OpenVSwitch())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	x := &table{t: t, path: path, db: db, sw: bridgetest.New()}
	x.r = bridge.New(x.db, x.sw, silent)
	return x
}

func (x *table) change(f func(*store.Tx) error) {
	x.t.Helper()
	if err := x.db.Transact("", f); err != nil {
		x.t.Fatal(err)
	}
}

// round runs a round and returns the calls that the switch got.
func (x *table) round() string {
	x.t.Helper()
	if _, err := x.r.Round(); err != nil {
		x.t.Fatal(err)
	}
	return strings.Join(x.sw.TakeCalls(), ", ")
}

// set changes columns of the rows of a name, or of all rows.
func (x *table) set(name, of string, columns map[string]datum.Datum) {
	x.t.Helper()
	x.change(func(tx *store.Tx) error {
		for r := range tx.Rows(name) {
			if of == "" || r.Text("name") == of {
				if err := tx.Set(name, r.ID(), columns); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// addPort adds a port with interfaces to a bridge, which is made if it is not there.
func (x *table) addPort(of, name string, interfaces ...map[string]datum.Datum) {
	x.t.Helper()
	x.change(func(tx *store.Tx) error {
		var refs []datum.Atom
		for _, columns := range interfaces {
			id, err := tx.Insert("Interface", columns)
			if err != nil {
				return err
			}
			refs = append(refs, datum.Ref(id))
		}
		port, err := tx.Insert("Port", map[string]datum.Datum{"name": text(name), "interfaces": datum.Set(refs...)})
		if err != nil {
			return err
		}
		return hang(tx, of, datum.One(datum.Ref(port)))
	})
}

// hang adds a port to a bridge.
func hang(tx *store.Tx, of string, port datum.Datum) error {
	for r := range tx.Rows("Bridge") {
		if r.Text("name") == of {
			return tx.Set("Bridge", r.ID(), map[string]datum.Datum{"ports": datum.Union(r.Get("ports"), port)})
		}
	}
	id, err := tx.Insert("Bridge", map[string]datum.Datum{"name": text(of), "ports": port, "datapath_type": text("dummy")})
	if err != nil {
		return err
	}
	for r := range tx.Rows("Open_vSwitch") {
		err = tx.Set("Open_vSwitch", r.ID(), map[string]datum.Datum{"bridges": datum.Union(r.Get("bridges"), datum.One(datum.Ref(id)))})
	}
	return err
}

// removePort removes a port from its bridge.
func (x *table) removePort(name string) {
	x.t.Helper()
	x.change(func(tx *store.Tx) error {
		for p := range tx.Rows("Port") {
			for b := range tx.Rows("Bridge") {
				if p.Text("name") == name {
					rest := datum.Subtract(b.Get("ports"), datum.One(datum.Ref(p.ID())))
					if err := tx.Set("Bridge", b.ID(), map[string]datum.Datum{"ports": rest}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func text(s string) datum.Datum  { return datum.One(datum.Text(s)) }
func number(n int64) datum.Datum { return datum.One(datum.Int(n)) }

// dummy are the columns of an interface of a type that the switch has.
func dummy(name string) map[string]datum.Datum {
	return map[string]datum.Datum{"name": text(name), "type": text("dummy")}
}

// port is the columns ofport and error of an interface.
func (x *table) port(name string) (s string) {
	x.db.Read(func(v store.View) {
		for r := range v.Named("Interface") {
			if r.Text("name") == name {
				n, _ := r.Number("ofport")
				s = strings.TrimSpace(fmt.Sprintf("%d %s", n, r.Text("error")))
			}
		}
	})
	return s
}

// TestRounds: the calls that the switch gets when rows change, and the rows' columns afterwards.
func TestRounds(t *testing.T) {
	x := newTable(t)
	check := func(want string) {
		t.Helper()
		if got := x.round(); got != want {
			t.Errorf("the switch was told: %s\nwant: %s", got, want)
		}
	}
	x.addPort("br0", "br0", map[string]datum.Datum{"name": text("br0"), "type": text("internal")})
	x.addPort("br0", "a", dummy("a"))
	check("add bridge br0, add port br0/br0 65534 internal, add port br0/a 1 dummy")
	check("")
	x.set("Interface", "a", map[string]datum.Datum{"external_ids": datum.TextMap(map[string]string{"iface-id": "x"})})
	check("change port br0/a")
	x.set("Interface", "a", map[string]datum.Datum{"ofport_request": number(7)})
	check("remove port br0/a, add port br0/a 7 dummy")
	x.addPort("br0", "b", dummy("b"))
	x.set("Interface", "b", map[string]datum.Datum{"ofport_request": number(7)}) // it is a's
	check("add port br0/b 1 dummy")
	x.set("Interface", "a", map[string]datum.Datum{"type": text("geneve"), "options": datum.TextMap(map[string]string{"key": "flow"})})
	check("remove port br0/a, add port br0/a 7 geneve")
	if p := x.sw.Port("br0", "a"); p.Options["key"] != "flow" || p.Tag != -1 {
		t.Errorf("%+v", p)
	}
	x.set("Bridge", "br0", map[string]datum.Datum{"fail_mode": text("secure")})
	x.set("Open_vSwitch", "", map[string]datum.Datum{"other_config": datum.TextMap(map[string]string{"flow-restore-wait": "true"})})
	check("change bridge br0")
	if b := x.sw.Bridge("br0"); b.FailMode != "secure" || !b.FlowRestoreWait {
		t.Errorf("%+v", b)
	}
	x.removePort("a")
	check("remove port br0/a, remove port br0/b, add port br0/b 7 dummy")
	x.set("Open_vSwitch", "", map[string]datum.Datum{"bridges": {}})
	check("remove bridge br0")
}

// TestRefusals: the rows have the errors of refused ports, until the configuration is corrected.
func TestRefusals(t *testing.T) {
	x := newTable(t)
	x.addPort("br0", "none", map[string]datum.Datum{"name": text("none")})
	x.addPort("br0", "odd", map[string]datum.Datum{"name": text("odd"), "type": text("odd")})
	x.addPort("br0", "bond", dummy("b1"), dummy("b2"))
	x.addPort("br1", "x", dummy("x"))
	x.set("Bridge", "br1", map[string]datum.Datum{"datapath_type": text("odd"), "stp_enable": datum.One(datum.Bool(true))})
	x.addPort("br2", "y", dummy("y"))
	x.set("Bridge", "br2", map[string]datum.Datum{"other_config": datum.TextMap(map[string]string{"refuse": "1"})})
	x.set("Open_vSwitch", "", map[string]datum.Datum{"next_cfg": number(3)})
	x.round()
	for name, want := range map[string]string{
		"none": "-1 could not open network device none (No such device)",
		"odd":  `-1 there is no interface type "odd": dummy, internal, system, geneve, patch are known`,
		"b1":   "-1 port bond has 2 interfaces: bonds are not supported",
		"x":    `-1 bridge br1: there is no datapath type "odd": dummy, netdev are known`,
		"y":    "-1 bridge br2: refused",
	} {
		if got := x.port(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	x.db.Read(func(v store.View) {
		for r := range v.Named("Bridge") {
			if want := map[string]string{"br1": "stp_enable"}[r.Text("name")]; r.Map("status")["unsupported"] != want || (r.Text("datapath_id") == "") != (r.Text("name") != "br0") {
				t.Errorf("bridge %s: %v, datapath %s", r.Text("name"), r.Map("status"), r.Text("datapath_id"))
			}
		}
		for r := range v.Named("Open_vSwitch") {
			if n, _ := r.Number("cur_cfg"); n != 3 {
				t.Errorf("cur_cfg is %d", n)
			}
		}
	})
	x.set("Interface", "none", map[string]datum.Datum{"type": text("dummy")})
	x.set("Bridge", "br2", map[string]datum.Datum{"other_config": {}})
	x.round()
	if a, b := x.port("none"), x.port("y"); a != "1" || b != "1" {
		t.Errorf("%s, %s", a, b)
	}
}

// TestUnsupportedIsNamed: columns whose packets pass all the same are named in the bridge's row. Such a
// column wakes the reconciler.
func TestUnsupportedIsNamed(t *testing.T) {
	x := newTable(t)
	x.addPort("br0", "p", dummy("p"))
	x.change(func(tx *store.Tx) error {
		qos, err := tx.Insert("QoS", map[string]datum.Datum{"type": text("linux-htb")})
		if err != nil {
			return err
		}
		for r := range tx.Rows("Port") {
			if err := tx.Set("Port", r.ID(), map[string]datum.Datum{"qos": datum.One(datum.Ref(qos))}); err != nil {
				return err
			}
		}
		return nil
	})
	wantUnsupported(x, "qos")
	x.set("Bridge", "br0", map[string]datum.Datum{"flood_vlans": datum.One(datum.Int(7))})
	wantUnsupported(x, "flood_vlans,qos")
	x.set("Interface", "p", map[string]datum.Datum{
		"ingress_policing_rate": datum.One(datum.Int(1000)),
		"bfd":                   datum.TextMap(map[string]string{"enable": "true"}),
		"lldp":                  datum.TextMap(map[string]string{"enable": "false"}),
	})
	wantUnsupported(x, "flood_vlans,qos,ingress_policing_rate,bfd")
}

// wantUnsupported plays a round, and wants the columns that the bridge's row then names.
func wantUnsupported(x *table, want string) {
	x.t.Helper()
	x.round()
	x.db.Read(func(v store.View) {
		for r := range v.Named("Bridge") {
			if got := r.Map("status")["unsupported"]; got != want {
				x.t.Errorf("unsupported: %q, want %q", got, want)
			}
		}
	})
}

// TestProtectedPortIsRefused: NORMAL would send its packets to other protected ports.
func TestProtectedPortIsRefused(t *testing.T) {
	x := newTable(t)
	x.addPort("br0", "p", dummy("p"))
	x.set("Port", "p", map[string]datum.Datum{"protected": datum.One(datum.Bool(true))})
	x.round()
	if got := x.port("p"); !strings.HasPrefix(got, "-1 port p: protected is not supported") {
		t.Errorf("the port has %s", got)
	}
}

// TestRefusalIsLoggedOnce: a port that is refused in each round is in the log once, and again
// with another reason.
func TestRefusalIsLoggedOnce(t *testing.T) {
	x := newTable(t)
	var log strings.Builder
	x.r = bridge.New(x.db, x.sw, slog.New(slog.NewTextHandler(&log, nil)))
	x.addPort("br0", "none", map[string]datum.Datum{"name": text("none")})
	for range 3 {
		x.round()
	}
	x.set("Interface", "none", map[string]datum.Datum{"type": text("odd")})
	for range 3 {
		x.round()
	}
	if n := strings.Count(log.String(), "a port is refused"); n != 2 {
		t.Errorf("the log has it %d times:\n%s", n, log.String())
	}
}

// TestConfigurationComesWithItsResults: cur_cfg changes in the transaction that writes ofport
// or error, never before.
func TestConfigurationComesWithItsResults(t *testing.T) {
	x := newTable(t)
	x.addPort("br0", "a", dummy("a"))
	x.addPort("br0", "none", map[string]datum.Datum{"name": text("none")})
	x.set("Open_vSwitch", "", map[string]datum.Datum{"next_cfg": number(1)})
	var transactions [][]string
	stop := x.db.Observe(nil, func(changes []store.Change) {
		var columns []string
		for _, c := range changes {
			for i, column := range c.New.Table.Columns {
				if !datum.Equal(c.Old.Cells[i], c.New.Cells[i]) {
					columns = append(columns, column.Name)
				}
			}
		}
		transactions = append(transactions, columns)
	})
	defer stop()
	x.round()
	if len(transactions) != 1 {
		t.Fatalf("%d transactions: %v", len(transactions), transactions)
	}
	for _, want := range []string{"cur_cfg", "ofport", "error", "datapath_id", "mac_in_use", "link_state", "statistics", "ovs_version", "iface_types"} {
		if !slices.Contains(transactions[0], want) {
			t.Errorf("the transaction lacks %s: %v", want, transactions[0])
		}
	}
}

// TestNumbersStay: after a restart ports have the numbers that they had before.
func TestNumbersStay(t *testing.T) {
	x := newTable(t)
	for _, name := range []string{"a", "b", "c"} {
		x.addPort("br0", name, dummy(name))
	}
	x.round()
	x.removePort("a")
	x.round()
	if err := x.db.Close(); err != nil {
		t.Fatal(err)
	}
	x = openTable(t, x.path)
	x.addPort("br0", "aa", dummy("aa"))
	if got, want := x.round(), "add bridge br0, add port br0/aa 1 dummy, add port br0/b 2 dummy, add port br0/c 3 dummy"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestDatapath: the row of Datapath that ovn-controller inserts gets the switch's capabilities.
func TestDatapath(t *testing.T) {
	x := newTable(t)
	x.change(func(tx *store.Tx) error {
		id, err := tx.Insert("Datapath", nil)
		if err != nil {
			return err
		}
		for r := range tx.Rows("Open_vSwitch") {
			d := datum.Datum{Keys: []datum.Atom{datum.Text("system")}, Values: []datum.Atom{datum.Ref(id)}}
			return tx.Set("Open_vSwitch", r.ID(), map[string]datum.Datum{"datapaths": d})
		}
		return nil
	})
	x.round()
	x.db.Read(func(v store.View) {
		for r := range v.Named("Datapath") {
			if r.Map("capabilities")["ct_zero_snat"] != "true" {
				t.Errorf("%v", r.Map("capabilities"))
			}
		}
	})
}
