package bridge

import (
	"fmt"
	"maps"
	"strings"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// cells are the columns that the reconciler writes, by table and row.
type cells map[string]map[datum.ID]map[string]datum.Datum

func (c cells) set(table string, id datum.ID, columns map[string]datum.Datum) {
	if c[table] == nil {
		c[table] = map[datum.ID]map[string]datum.Datum{}
	}
	if c[table][id] == nil {
		c[table][id] = map[string]datum.Datum{}
	}
	maps.Copy(c[table][id], columns)
}

// write writes the columns in one transaction. It leaves out rows that a client has deleted
// meanwhile, because another round follows.
func (c cells) write(tx *store.Tx) error {
	for table, rows := range c {
		for id, columns := range rows {
			if tx.Row(table, id) == nil {
				continue
			}
			if err := tx.Set(table, id, columns); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeBack writes the results for clients. It reads the switch's state before it takes the
// database's lock.
func (r *Reconciler) writeBack(w *wanted) error {
	c := cells{}
	c.set("Open_vSwitch", w.root, r.rootColumns(w))
	for _, b := range w.bridges {
		c.set("Bridge", b.id, r.bridgeColumns(b))
		for _, p := range b.ports {
			c.set("Interface", p.id, r.portColumns(b, p))
		}
	}
	return r.db.Transact("", func(tx *store.Tx) error {
		r.setDatapaths(tx, c)
		r.setControllers(tx, w, c)
		return c.write(tx)
	})
}

func (r *Reconciler) rootColumns(w *wanted) map[string]datum.Datum {
	f := r.facts
	columns := map[string]datum.Datum{
		"cur_cfg": datum.One(datum.Int(w.nextCfg)), "ovs_version": textOrNone(f.Version),
		"datapath_types": datum.Texts(f.DatapathTypes...), "iface_types": datum.Texts(f.InterfaceTypes...),
		"dpdk_initialized": datum.One(datum.Bool(false)), "dpdk_version": textOrNone("none"),
	}
	if f.SystemType != "" {
		columns["system_type"], columns["system_version"] = textOrNone(f.SystemType), textOrNone(f.SystemVersion)
	}
	return columns
}

func (r *Reconciler) bridgeColumns(b *wantedBridge) map[string]datum.Datum {
	status := map[string]string{}
	if len(b.unsupported) > 0 {
		status["unsupported"] = strings.Join(b.unsupported, ",")
	}
	id, version := none, datum.One(datum.Text(""))
	if r.bridges[b.Name] != nil {
		id, version = textOrNone(fmt.Sprintf("%016x", b.DatapathID)), datum.One(datum.Text(r.facts.DatapathVersion))
	}
	return map[string]datum.Datum{"datapath_id": id, "datapath_version": version, "status": datum.TextMap(status)}
}

// portColumns are the columns of an Interface. A port that the switch refused has the number -1
// and the reason.
func (r *Reconciler) portColumns(b *wantedBridge, p *wantedPort) map[string]datum.Datum {
	if p.err != nil {
		columns := noState()
		columns["ofport"], columns["error"] = datum.One(datum.Int(-1)), textOrNone(p.err.Error())
		return columns
	}
	s := r.sw.PortState(b.Name, p.Name)
	columns := s.columns()
	columns["ofport"], columns["error"] = datum.One(datum.Int(int64(p.Number))), none
	return columns
}

// setDatapaths fills the rows of Datapath that clients made.
func (r *Reconciler) setDatapaths(tx *store.Tx, c cells) {
	columns := map[string]datum.Datum{
		"capabilities": datum.TextMap(r.facts.Capabilities), "datapath_version": datum.One(datum.Text(r.facts.DatapathVersion)),
	}
	for row := range tx.Rows("Datapath") {
		c.set("Datapath", row.ID(), columns)
	}
}

// setControllers fills the rows of Controller.
func (r *Reconciler) setControllers(tx *store.Tx, w *wanted, c cells) {
	for _, b := range w.bridges {
		row := tx.Row("Bridge", b.id)
		if row == nil {
			continue
		}
		states := r.controllers[b.Name]
		for _, id := range row.Refs("controller") {
			s := states[tx.Row("Controller", id).Text("target")]
			c.set("Controller", id, s.columns())
		}
	}
}
