package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/internal/printable"
)

// View is what the screen shows.
type View int

// The views, in the order of their keys.
const (
	Ports View = iota
	Workers
	Tables
	Rules
	Connections
	Drops
	Reasons
	numViews
)

var views = [numViews]struct {
	name    string
	columns []column
	rows    func(*rates) []row
}{
	Ports: {"ports", []column{{"PORT", text}, {"POD", text}, {"IN/s", number}, {"IN bit/s", number}, {"OUT/s", number}, {"OUT bit/s", number},
		{"DROP/s", number}, {"LOAD", number}, {"WORKER", number}, {"DRIVER", text}, {"LINK", text}}, portRows},
	Workers: {"workers", []column{{"WORKER", number}, {"PORTS", number}, {"PACKETS/s", number}, {"BATCHES/s", number}, {"LOAD", number},
		{"WORKING", number}, {"SPINNING", number}, {"ASLEEP", number}, {"SLEEPS/s", number}}, workerRows},
	Tables: {"tables", []column{{"TABLE", text}, {"ENTRIES", number}, {"LEARNED", number}, {"LOOKUPS/s", number}, {"MATCHED/s", number}, {"DROPPED/s", number},
		{"NS/LOOKUP", number}, {"SHAPE", text}}, tableRows},
	Rules: {"rules", []column{{"POLICY", text}, {"RULE", text}, {"ACTION", text}, {"SESSIONS/s", number}, {"PACKETS/s", number},
		{"bit/s", number}, {"DIRECTION", text}, {"SESSIONS", number}, {"STATE", text}}, ruleRows},
	Connections: {"connections", []column{{"COUNTER", text}, {"OF", text}, {"VALUE", number}, {"CHANGE/s", number}}, connectionRows},
	Drops:       {"drops", []column{{"TIME", number}, {"FROM", text}, {"TABLE", text}, {"REASON", text}, {"OBJECT", text}, {"PACKET", text}}, dropRows},
	Reasons:     {"reasons", []column{{"TABLE", text}, {"REASON", text}, {"DROPPED/s", number}, {"DROPPED", number}, {"MEANING", text}}, reasonRows},
}

// sortedBy is the column by which a view is sorted at first: its first rate, or its drops.
// Dropped packets begin with the last one.
var sortedBy = [numViews]int{Ports: 2, Workers: 2, Tables: 3, Rules: 4, Connections: 3, Drops: 0, Reasons: 2}

// String is the view's name.
func (v View) String() string { return views[v].name }

// ViewNamed is the view of a name.
func ViewNamed(name string) (View, error) {
	var names []string
	for v := range numViews {
		if views[v].name == name {
			return v, nil
		}
		names = append(names, views[v].name)
	}
	return 0, fmt.Errorf("there is no view %q; there are %s", name, strings.Join(names, ", "))
}

// rates are two readings. With one reading, was is nil, and rates are unknown.
type rates struct{ was, now *Reading }

// newRates ignores was if no time has passed since.
func newRates(was, now *Reading) *rates {
	if was != nil && now.At.Sub(was.At) <= 0 {
		was = nil
	}
	return &rates{was, now}
}

// per is the change of a counter in a second. A counter that fell has started from 0 again.
func (r *rates) per(now, was uint64) cell {
	if r.was == nil {
		return cell{text: "-", number: -1}
	}
	n := now - was
	if now < was {
		n = now
	}
	return amount(float64(n) / r.now.At.Sub(r.was.At).Seconds())
}

// share is the fraction of the time.
func (r *rates) share(now, was time.Duration) cell {
	if r.was == nil {
		return cell{text: "-", number: -1}
	}
	return percent(float64(max(0, now-was)) / float64(r.now.At.Sub(r.was.At)))
}

// earlier is the earlier reading, or an empty one.
func (r *rates) earlier() *Reading { return cmp.Or(r.was, new(Reading)) }

// rowsOf makes a row of each item. It gives cells the earlier item with the same key, or a zero
// one.
func rowsOf[T any, K comparable](now, earlier []T, key func(*T) K, cells func(now, was *T) row) (all []row) {
	before := map[K]*T{}
	for i := range earlier {
		before[key(&earlier[i])] = &earlier[i]
	}
	for i := range now {
		all = append(all, cells(&now[i], cmp.Or(before[key(&now[i])], new(T))))
	}
	return all
}

// Cells.

// words is a text from outside. Characters that control a terminal are escaped.
func words(s string) cell { return cell{text: printable.Text(s)} }

func count[N int | uint64](n N) cell {
	return cell{text: strconv.FormatUint(uint64(n), 10), number: float64(n)}
}

func percent(part float64) cell { return cell{text: fmt.Sprintf("%.1f%%", 100*part), number: part} }

// amount is a number in at most five letters: 999, 12.3k, 1.2M.
func amount(n float64) cell {
	short := strconv.FormatFloat(n, 'f', 0, 64)
	switch {
	case n > 0 && n < 10:
		short = strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	case n >= 1e3:
		unit, scaled := "k", n/1e3
		for _, next := range []string{"M", "G", "T"} {
			if scaled < 999.95 {
				break
			}
			unit, scaled = next, scaled/1e3
		}
		short = strconv.FormatFloat(scaled, 'f', 1, 64) + unit
	}
	return cell{text: short, number: n}
}

func orDash(s string) string { return cmp.Or(s, "-") }
