package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
)

// The rows of each view, from two readings.

func portRows(r *rates) []row {
	key := func(p *api.PortRecord) uint32 { return p.No }
	return rowsOf(r.now.Ports, r.earlier().Ports, key, func(p, was *api.PortRecord) row {
		link := "up"
		switch {
		case p.Missing != "":
			link = "gone"
		case !p.Up:
			link = "down"
		}
		return row{words(p.Name), words(orDash(p.Pod)),
			r.per(p.Rx.Packets, was.Rx.Packets), r.bits(p.Rx.Bytes, was.Rx.Bytes), r.per(p.Tx.Packets, was.Tx.Packets), r.bits(p.Tx.Bytes, was.Tx.Bytes),
			r.per(droppedBy(p), droppedBy(was)), percent(p.Load), count(p.Worker), words(p.Driver), words(link)}
	})
}

// bits is the rate of bytes, in bits.
func (r *rates) bits(now, was uint64) cell { return r.per(8*now, 8*was) }

// droppedBy is how many packets a port dropped in both directions.
func droppedBy(p *api.PortRecord) uint64 { return p.Rx.Dropped + p.Tx.Dropped }

func workerRows(r *rates) []row {
	key := func(w *api.WorkerRecord) int { return w.No }
	return rowsOf(r.now.Workers, r.earlier().Workers, key, func(w, was *api.WorkerRecord) row {
		return row{count(w.No), count(len(w.OFPorts)), r.per(w.Packets, was.Packets), r.per(w.Batches, was.Batches), percent(w.Load),
			r.share(w.WorkingNS, was.WorkingNS), r.share(w.SpinningNS, was.SpinningNS), r.share(w.AsleepNS, was.AsleepNS), r.per(w.Sleeps, was.Sleeps)}
	})
}

func tableRows(r *rates) []row {
	key := func(t *api.Table) uint8 { return t.ID }
	return rowsOf(r.now.Tables, r.earlier().Tables, key, func(t, was *api.Table) row {
		return row{words(t.Name), count(t.Entries), count(t.Learned), r.per(t.Lookups, was.Lookups), r.per(t.Matched, was.Matched),
			r.per(dropped(t), dropped(was)), count(int(t.LookupNS.Nanoseconds())), words(t.Shape)}
	})
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

// ruleOf is a rule and the object of its policy.
type ruleOf struct {
	policy string
	*policy.RuleRow
}

func ruleRows(r *rates) []row {
	key := func(x *ruleOf) ruleKey { return ruleKey{x.policy, x.Direction, x.Index} }
	all := rowsOf(rulesOf(r.now), rulesOf(r.earlier()), key, func(rule, was *ruleOf) row {
		b := cmp.Or(was.RuleRow, new(policy.RuleRow))
		return row{words(shortKind(rule.policy)), words(rule.Name), words(string(rule.Action)),
			r.per(rule.Sessions, b.Sessions), r.per(rule.Packets, b.Packets), r.bits(rule.Bytes, b.Bytes),
			words(rule.Direction), count(rule.Sessions), words(string(rule.State))}
	})
	return append(all, cookieRows(r)...)
}

// cookieRows replace the rows of rules if entries have no objects.
func cookieRows(r *rates) []row {
	none := cell{text: "-", number: -1}
	key := func(c *api.CookieRecord) string { return c.Object }
	return rowsOf(r.now.Cookies, r.earlier().Cookies, key, func(c, was *api.CookieRecord) row {
		return row{words(c.Object), words(fmt.Sprintf("%d entries in %d tables", c.Entries, c.Tables)), none,
			none, r.per(c.Packets, was.Packets), r.bits(c.Bytes, was.Bytes), none, none, none}
	})
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

func rulesOf(r *Reading) (all []ruleOf) {
	for i := range r.Policies {
		p := &r.Policies[i]
		for j := range p.Rules {
			all = append(all, ruleOf{p.Text, &p.Rules[j]})
		}
	}
	return all
}

func connectionRows(r *rates) []row {
	key := func(c *api.Counter) [2]string { return [2]string{c.Name, c.Label} }
	return rowsOf(r.now.Connections, r.earlier().Connections, key, func(c, was *api.Counter) row {
		change := r.per(c.Value, was.Value)
		if !strings.HasSuffix(c.Name, "_total") {
			change = r.drift(c.Value, was.Value)
		}
		return row{words(c.Name), words(orDash(c.Label)), count(c.Value), change}
	})
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

func reasonRows(r *rates) []row {
	key := func(d *api.Drop) [2]string { return [2]string{d.Table, d.Reason} }
	return rowsOf(r.now.Reasons, r.earlier().Reasons, key, func(d, was *api.Drop) row {
		return row{words(d.Table), words(d.Reason), r.per(d.Packets, was.Packets), count(d.Packets), words(d.Meaning)}
	})
}
