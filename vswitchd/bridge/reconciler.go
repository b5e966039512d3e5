package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// Reconciler configures a switch by the rows of a database.
type Reconciler struct {
	db    *store.Database
	sw    Switch
	facts Facts
	log   *slog.Logger
	// bridges are the bridges of the switch, by name.
	bridges map[string]*installed
	// controllers are the states of connections, by bridge and target.
	controllers map[string]map[string]ControllerState
	// logged are the errors that were logged last, by "BRIDGE/PORT".
	logged map[string]string
	wake   chan struct{}
}

// New makes a reconciler of the database Open_vSwitch.
func New(db *store.Database, sw Switch, log *slog.Logger) *Reconciler {
	return &Reconciler{
		db: db, sw: sw, facts: sw.Facts(), log: log, bridges: map[string]*installed{},
		controllers: map[string]map[string]ControllerState{}, logged: map[string]string{}, wake: make(chan struct{}, 1),
	}
}

// configuration are the columns that clients write and the switch follows. Changes of other columns
// do not wake the loop, so the reconciler does not wake itself.
var configuration = map[string][]string{
	"Open_vSwitch": {"bridges", "next_cfg", "other_config", "datapaths"},
	"Bridge": {"name", "ports", "controller", "datapath_type", "fail_mode", "protocols", "other_config", "mirrors", "netflow", "sflow", "ipfix",
		"stp_enable", "rstp_enable", "mcast_snooping_enable"},
	"Port":       {"interfaces", "tag", "trunks", "vlan_mode", "cvlans", "other_config", "qos"},
	"Interface":  {"name", "type", "options", "ofport_request", "mac", "mtu_request", "external_ids", "other_config"},
	"Controller": {"target", "inactivity_probe", "max_backoff", "connection_mode", "other_config"},
	"Datapath":   {},
}

// awayTime is the pause after a round in which the database's server did not answer.
const awayTime = time.Second

// Run follows the rows until ctx ends. It inserts the row of Open_vSwitch if it is missing.
func (r *Reconciler) Run(ctx context.Context) error {
	stop := r.db.Observe(nil, r.wakeIfConfigured)
	defer stop()
	if err := r.db.Transact("the row of the switch", makeRoot); err != nil {
		return err
	}
	for {
		interval, err := r.Round()
		if errors.Is(err, store.ErrAway) {
			r.log.Info("the database's server does not answer: the switch is configured when it does again", "why", err)
			interval, err = awayTime, nil
		}
		if err != nil {
			return err
		}
		t := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-r.wake:
			t.Stop()
		case <-t.C:
		}
	}
}

// makeRoot inserts the row of Open_vSwitch if there is none.
func makeRoot(tx *store.Tx) error {
	for range tx.Rows("Open_vSwitch") {
		return nil
	}
	_, err := tx.Insert("Open_vSwitch", nil)
	return err
}

// Wake requests another round, because a port or a controller's connection has changed.
func (r *Reconciler) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// wakeIfConfigured wakes the loop if a transaction changed configuration.
func (r *Reconciler) wakeIfConfigured(changes []store.Change) {
	if slices.ContainsFunc(changes, isConfiguration) {
		r.Wake()
	}
}

func isConfiguration(c store.Change) bool {
	columns, followed := configuration[c.Row().Table.Name]
	if c.Old == nil || c.New == nil {
		return followed
	}
	return slices.ContainsFunc(columns, func(name string) bool { return !datum.Equal(c.Old.Get(name), c.New.Get(name)) })
}

// Round configures the switch by the present rows, and writes the results back. It returns the
// time until the next round if nothing changes.
func (r *Reconciler) Round() (next time.Duration, err error) {
	var w *wanted
	r.db.Read(func(v store.View) { w = readWanted(v) })
	r.install(w)
	clear(r.controllers)
	for name := range r.bridges {
		r.controllers[name] = r.sw.ControllerStates(name)
	}
	return w.interval, r.writeBack(w)
}

// RemoveAll removes all bridges of the switch. Run must have ended.
func (r *Reconciler) RemoveAll() (err error) {
	for name := range r.bridges {
		if e := r.sw.RemoveBridge(name); e != nil {
			err = errors.Join(err, fmt.Errorf("bridge %s: %w", name, e))
			continue
		}
		delete(r.bridges, name)
	}
	return err
}
