package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
)

// The rows of each view, from two readings.

func portRows(r *rates) (all []row) {
	was := before(r, func(r *Reading) []api.PortRecord { return r.Ports }, func(p *api.PortRecord) uint32 { return p.No })
	for i := range r.now.Ports {
		p := &r.now.Ports[i]
		b := or(was[p.No])
		link := "up"
		switch {
		case p.Missing != "":
			link = "gone"
		case !p.Up:
			link = "down"
		}
		all = append(all, row{words(p.Name), words(orDash(p.Pod)),
			r.per(p.Rx.Packets, b.Rx.Packets), r.bits(p.Rx.Bytes, b.Rx.Bytes), r.per(p.Tx.Packets, b.Tx.Packets), r.bits(p.Tx.Bytes, b.Tx.Bytes),
			r.per(droppedBy(p), droppedBy(b)), percent(p.Load), count(p.Worker), words(p.Driver), words(link)})
	}
	return all
}

// bits is the rate of bytes, in bits.
func (r *rates) bits(now, was uint64) cell { return r.per(8*now, 8*was) }

// droppedBy is how many packets a port dropped in both directions.
func droppedBy(p *api.PortRecord) uint64 { return p.Rx.Dropped + p.Tx.Dropped }

func workerRows(r *rates) (all []row) {
	was := before(r, func(r *Reading) []api.WorkerRecord { return r.Workers }, func(w *api.WorkerRecord) int { return w.No })
	for i := range r.now.Workers {
		w := &r.now.Workers[i]
		b := or(was[w.No])
		all = append(all, row{count(w.No), count(len(w.OFPorts)), r.per(w.Packets, b.Packets), r.per(w.Batches, b.Batches), percent(w.Load),
			r.share(w.WorkingNS, b.WorkingNS), r.share(w.SpinningNS, b.SpinningNS), r.share(w.AsleepNS, b.AsleepNS), r.per(w.Sleeps, b.Sleeps)})
	}
	return all
}

func tableRows(r *rates) (all []row) {
	was := before(r, func(r *Reading) []api.Table { return r.Tables }, func(t *api.Table) uint8 { return t.ID })
	for i := range r.now.Tables {
		t := &r.now.Tables[i]
		b := or(was[t.ID])
		all = append(all, row{words(t.Name), count(t.Entries), count(t.Learned), r.per(t.Lookups, b.Lookups), r.per(t.Matched, b.Matched),
			r.per(dropped(t), dropped(b)), count(int(t.LookupNS.Nanoseconds())), words(t.Shape)})
	}
	return all
}

func dropped(t *api.Table) (n uint64) {
	for _, of := range t.Drops {
		n += of
	}
	return n
}

// ruleKey identifies a rule.
type ruleKey struct {
	policy, direction string
	index             int
}

func ruleRows(r *rates) (all []row) {
	was := map[ruleKey]*policy.RuleRow{}
	if r.was != nil {
		eachRule(r.was, func(k ruleKey, rule *policy.RuleRow) { was[k] = rule })
	}
	eachRule(r.now, func(k ruleKey, rule *policy.RuleRow) {
		b := or(was[k])
		all = append(all, row{words(shortKind(k.policy)), words(rule.Name), words(string(rule.Action)),
			r.per(rule.Sessions, b.Sessions), r.per(rule.Packets, b.Packets), r.bits(rule.Bytes, b.Bytes),
			words(rule.Direction), count(rule.Sessions), words(string(rule.State))})
	})
	return append(all, cookieRows(r)...)
}

// cookieRows replace the rows of rules if entries have no objects.
func cookieRows(r *rates) (all []row) {
	was := before(r, func(r *Reading) []api.CookieRecord { return r.Cookies }, func(c *api.CookieRecord) string { return c.Object })
	none := cell{text: "-", number: -1}
	for i := range r.now.Cookies {
		c := &r.now.Cookies[i]
		b := or(was[c.Object])
		all = append(all, row{words(c.Object), words(fmt.Sprintf("%d entries in %d tables", c.Entries, c.Tables)), none,
			none, r.per(c.Packets, b.Packets), r.bits(c.Bytes, b.Bytes), none, none, none})
	}
	return all
}

// kinds are the short names that kubectl has for policies.
var kinds = map[string]string{
	string(cluster.KindNetworkPolicy): "netpol", string(cluster.KindClusterNetworkPolicy): "acnp", string(cluster.KindAntreaNetworkPolicy): "annp",
}

// shortKind is a policy with the short name of its kind.
func shortKind(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	if short, ok := kinds[kind]; ok {
		return short + "/" + name
	}
	return object
}

func eachRule(r *Reading, visit func(ruleKey, *policy.RuleRow)) {
	for i := range r.Policies {
		p := &r.Policies[i]
		for j := range p.Rules {
			visit(ruleKey{p.Text, p.Rules[j].Direction, p.Rules[j].Index}, &p.Rules[j])
		}
	}
}

func connectionRows(r *rates) (all []row) {
	type key struct{ name, label string }
	was := before(r, func(r *Reading) []api.Counter { return r.Connections }, func(c *api.Counter) key { return key{c.Name, c.Label} })
	for i := range r.now.Connections {
		c := &r.now.Connections[i]
		b := or(was[key{c.Name, c.Label}])
		change := r.per(c.Value, b.Value)
		if !strings.HasSuffix(c.Name, "_total") {
			change = r.drift(c.Value, b.Value)
		}
		all = append(all, row{words(c.Name), words(orDash(c.Label)), count(c.Value), change})
	}
	return all
}

// drift is the rate of a value that may fall.
func (r *rates) drift(now, was uint64) cell {
	if r.was == nil || now >= was {
		return r.per(now, was)
	}
	c := r.per(was, now)
	return cell{"-" + c.text, -c.number}
}

// dropRows are the last dropped packets, sorted by their numbers.
func dropRows(r *rates) (all []row) {
	for i := range r.now.Drops {
		p := &r.now.Drops[i]
		when := cell{p.Time.Format(time.TimeOnly), float64(p.No)}
		all = append(all, row{when, words(p.From()), words(orDash(p.Table)), words(p.Reason), words(orDash(p.Object())), words(p.Summary())})
	}
	return all
}

func reasonRows(r *rates) (all []row) {
	type key struct{ table, reason string }
	was := before(r, func(r *Reading) []api.Drop { return r.Reasons }, func(d *api.Drop) key { return key{d.Table, d.Reason} })
	for i := range r.now.Reasons {
		d := &r.now.Reasons[i]
		all = append(all, row{words(d.Table), words(d.Reason), r.per(d.Packets, or(was[key{d.Table, d.Reason}]).Packets), count(d.Packets), words(d.Meaning)})
	}
	return all
}
