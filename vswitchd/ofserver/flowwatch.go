package ofserver

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// watchTime is the interval of checks for changes that no controller has made: learned entries, and
// entries whose timeouts have passed.
const watchTime = 250 * time.Millisecond

// flowWatch has the switch's entries while there are flow monitors. The caller of its methods holds
// Server.changes. A controller's change is reported to monitors when it is made. The server finds
// other changes by comparing the entries with those of the switch.
type flowWatch struct {
	running  bool
	seed     maphash.Seed
	flows    map[uint64][]*watchedFlow // by the hash of the identity
	monitors map[*connection]bool
	// now counts changes, from 1.
	now uint64
	// generation and learnings are the switch's at the last comparison, and round counts
	// comparisons.
	generation, learnings uint64
	round                 uint64
}

// watchedFlow is an entry. first, added and modified are numbers of changes: the first with this
// identity, the last that added it, and the last that modified it.
type watchedFlow struct {
	entry                  *flow.Entry
	first, added, modified uint64
	since                  time.Time // when it was added
	round                  uint64    // of the last comparison with the entry
}

// start lists the entries and starts runWatch, unless it runs.
func (w *flowWatch) start(s *Server) error {
	if w.running {
		return nil
	}
	w.seed, w.flows, w.now, w.monitors = maphash.MakeSeed(), map[uint64][]*watchedFlow{}, 1, map[*connection]bool{}
	if err := w.reportDifferences(s); err != nil {
		return err
	}
	w.running = true
	go s.runWatch()
	return nil
}

// setMonitors replaces the monitors of a connection.
func (w *flowWatch) setMonitors(c *connection, all map[uint32]*openflow.FlowMonitor) {
	c.monitors.all = all
	if len(all) > 0 {
		w.monitors[c] = true
	} else {
		delete(w.monitors, c)
	}
}

// runWatch checks for changes that no controller has made. It ends with the last monitor.
func (s *Server) runWatch() {
	t := time.NewTicker(watchTime)
	defer t.Stop()
	for range t.C {
		if !s.watchOnce() {
			return
		}
	}
}

// watchOnce compares the entries once. If there are no monitors, it reports false instead.
func (s *Server) watchOnce() (ok bool) {
	s.changes.Lock()
	defer s.changes.Unlock()
	if len(s.watch.monitors) == 0 {
		s.watch = flowWatch{}
		return false
	}
	if err := s.watch.reportDifferences(s); err != nil {
		s.Log.Info("flow monitors miss changes that no controller has made", "why", err)
	}
	return true
}

// reportDifferences reports the differences between the switch's entries and the known ones.
func (w *flowWatch) reportDifferences(s *Server) error {
	generation, learnings := s.Switch.Generation(), s.Switch.Learnings()
	if w.running && generation == w.generation && learnings == w.learnings {
		return nil
	}
	all, err := listed(s.sw, s.sw.Flows)
	if err != nil {
		return err
	}
	w.generation, w.learnings = generation, learnings
	for _, ch := range w.differences(all) {
		w.report(nil, []flowChange{ch})
	}
	return nil
}

// differences are the changes from the known entries to those of a list.
func (w *flowWatch) differences(all []telemetry.FlowStats) (changes []flowChange) {
	w.round++
	for i := range all {
		e := all[i].Entry
		k := w.findFlow(e)
		switch {
		case k == nil:
			changes = append(changes, flowChange{FlowUpdate: openflow.FlowUpdate{Event: openflow.EventAdded, Entry: e}})
		case k.entry.Cookie != e.Cookie || k.entry.String() != e.String():
			changes = append(changes, flowChange{FlowUpdate: openflow.FlowUpdate{Event: openflow.EventModified, Entry: e}, old: k.entry})
			k.round = w.round
		default:
			k.round = w.round
			k.since = time.Now().Add(-all[i].Duration)
		}
	}
	for _, same := range w.flows {
		for _, k := range same {
			if k.round != w.round {
				changes = append(changes, flowChange{FlowUpdate: openflow.FlowUpdate{Event: openflow.EventRemoved, Entry: k.entry, Reason: k.reason()}})
			}
		}
	}
	return changes
}

// timeoutSlack is how much too early a timeout may seem to pass: the age of an entry is out of date
// when it is read.
const timeoutSlack = 100 * time.Millisecond

// reason is why an entry is gone that no controller has removed.
func (k *watchedFlow) reason() openflow.RemovedReason {
	e := k.entry
	switch hard := time.Duration(e.HardTimeout) * time.Second; {
	case hard != 0 && (e.IdleTimeout == 0 || time.Since(k.since) > hard-timeoutSlack):
		return openflow.RemovedHard
	case e.IdleTimeout != 0:
		return openflow.RemovedIdle
	}
	return openflow.RemovedDelete
}

func (w *flowWatch) hash(e *flow.Entry) uint64 {
	return maphash.Comparable(w.seed, e.Match) ^ uint64(e.Priority)<<8 ^ uint64(e.Table)
}

// findFlow is the known entry with the identity of e; nil if there is none.
func (w *flowWatch) findFlow(e *flow.Entry) *watchedFlow {
	for _, k := range w.flows[w.hash(e)] {
		if k.entry.Identity() == e.Identity() {
			return k
		}
	}
	return nil
}

// report sends changes to the monitors. by is the connection that made them; nil for none.
func (w *flowWatch) report(by *connection, changes []flowChange) {
	for len(changes) > 0 {
		n := slices.IndexFunc(changes, func(ch flowChange) bool { return ch.message != changes[0].message })
		if n < 0 {
			n = len(changes)
		}
		for i := range changes[:n] {
			w.reportOne(by, &changes[i])
		}
		for c := range w.monitors {
			c.monitors.queueUpdates(c, w.now)
		}
		changes = changes[n:]
	}
}

func (w *flowWatch) reportOne(by *connection, ch *flowChange) {
	w.now++
	k := w.findFlow(ch.Entry)
	if ch.old == nil && k != nil {
		ch.old = k.entry
	}
	for c := range w.monitors {
		c.monitors.addUpdate(ch, ch.own && c == by, k)
	}
	w.recordChange(ch, k)
}

// recordChange applies a change to the known entries.
func (w *flowWatch) recordChange(ch *flowChange, k *watchedFlow) {
	h := w.hash(ch.Entry)
	switch {
	case ch.Event == openflow.EventRemoved:
		w.flows[h] = slices.DeleteFunc(w.flows[h], func(o *watchedFlow) bool { return o == k })
		if len(w.flows[h]) == 0 {
			delete(w.flows, h)
		}
		return
	case k == nil:
		k = &watchedFlow{first: w.now}
		w.flows[h] = append(w.flows[h], k)
	}
	k.entry, k.round = ch.Entry, w.round
	if ch.Event == openflow.EventAdded {
		k.added, k.since = w.now, time.Now()
	} else {
		k.modified = w.now
	}
}

// initialParts are the present entries that monitors select.
func (w *flowWatch) initialParts(monitors []*openflow.FlowMonitor) (parts []openflow.Part) {
	return w.parts(func(k *watchedFlow) (event openflow.FlowEvent, flags openflow.MonitorFlags) {
		for _, m := range monitors {
			if covers(m, k.entry, nil) {
				flags |= m.Flags
			}
		}
		return openflow.EventInitial, flags
	})
}

// partsSince are the entries that were added or modified after a change.
func (w *flowWatch) partsSince(monitors map[uint32]*openflow.FlowMonitor, change uint64) []openflow.Part {
	return w.parts(func(k *watchedFlow) (openflow.FlowEvent, openflow.MonitorFlags) {
		switch {
		case k.added > change:
			return openflow.EventAdded, wantedFlags(monitors, openflow.MonitorAdded, k.entry, nil)
		case k.modified > change:
			return openflow.EventModified, wantedFlags(monitors, openflow.MonitorModified, k.entry, nil)
		}
		return 0, 0
	})
}

// parts are the entries to report, by table, in the order in which they were added.
func (w *flowWatch) parts(told func(*watchedFlow) (openflow.FlowEvent, openflow.MonitorFlags)) (parts []openflow.Part) {
	var all []*watchedFlow
	for _, same := range w.flows {
		all = append(all, same...)
	}
	slices.SortFunc(all, func(a, b *watchedFlow) int {
		if a.entry.Table != b.entry.Table {
			return int(a.entry.Table) - int(b.entry.Table)
		}
		return int(int64(a.first) - int64(b.first))
	})
	for _, k := range all {
		if event, flags := told(k); flags != 0 {
			parts = append(parts, &openflow.FlowUpdate{Event: event, Entry: k.entry, Actions: flags&openflow.MonitorActions != 0})
		}
	}
	return parts
}
