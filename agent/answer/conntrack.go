package answer

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
)

// Connections, listed and flushed by filter.

// parseFilter parses the filter of connections: zone, address or range, port, state and mark
// (VALUE or VALUE/MASK).
func parseFilter(v url.Values) (f conntrack.Filter, err error) {
	for _, p := range []struct {
		name string
		read func(*conntrack.Filter, string) error
	}{{"zone", readZone}, {"address", readAddress}, {"port", readPort}, {"state", readState}, {"mark", readMark}} {
		if !v.Has(p.name) {
			continue
		}
		if len(v[p.name]) > 1 {
			return f, fmt.Errorf("%s is given more than once", p.name)
		}
		if err := p.read(&f, v.Get(p.name)); err != nil {
			return f, fmt.Errorf("%s=%.60q %w", p.name, v.Get(p.name), err)
		}
	}
	return f, nil
}

func readZone(f *conntrack.Filter, text string) error {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil {
		return fmt.Errorf("is not between 0 and 65535")
	}
	zone := uint16(n)
	f.Zone = &zone
	return nil
}

func readAddress(f *conntrack.Filter, text string) error {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		f.Address = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("is neither an IP address nor a range (CIDR)")
	}
	f.Address = p.Masked()
	return nil
}

func readPort(f *conntrack.Filter, text string) error {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("is not between 1 and 65535")
	}
	f.Port = uint16(n)
	return nil
}

func readState(f *conntrack.Filter, text string) error {
	f.State = strings.ToUpper(text)
	if !slices.Contains(conntrack.States(), f.State) {
		return fmt.Errorf("is none of %s", strings.Join(conntrack.States(), ", "))
	}
	return nil
}

func readMark(f *conntrack.Filter, text string) error {
	value, mask, masked := strings.Cut(text, "/")
	n, err := strconv.ParseUint(value, 0, 32)
	m := uint64(1<<32 - 1)
	if err == nil && masked {
		m, err = strconv.ParseUint(mask, 0, 32)
	}
	switch {
	case err != nil:
		return fmt.Errorf("is not VALUE or VALUE/MASK of 32 bits")
	case n&^m != 0:
		return fmt.Errorf("has bits outside its mask: nothing could match")
	}
	f.Mark, f.MarkMask = uint32(n), uint32(m)
	return nil
}

func endpoints(d *conntrack.Direction) api.Endpoints {
	return api.Endpoints{Src: d.Src, Dst: d.Dst, SrcPort: d.SrcPort, DstPort: d.DstPort, ID: d.ID}
}

// connections are the connections that a query selects.
func (p *Answers) connections(q query) iter.Seq[conntrack.Conn] {
	return func(yield func(conntrack.Conn) bool) {
		n := 0
		for c := range p.Connections.Dump(q.connections) {
			if n++; !yield(c) || n == q.limit {
				return
			}
		}
	}
}

// connectionMarks names connections' marks and labels. It computes each different one once,
// because most connections have the same. It is for one request.
type connectionMarks struct {
	names layout.MarkNames
	known map[markAndLabel][]string
}

type markAndLabel struct {
	mark  uint32
	label conntrack.Label
}

func (p *Answers) connectionMarks() *connectionMarks {
	return &connectionMarks{programs.MarkNames(p.Switch.Names()), map[markAndLabel][]string{}}
}

func (m *connectionMarks) of(c *conntrack.Conn) []string {
	key := markAndLabel{c.Mark, c.Label}
	words, ok := m.known[key]
	if !ok {
		words = m.names.Conn(c.Mark, pipeline.LabelValue(c.Label))
		m.known[key] = words
	}
	return words
}

// connectionRecords lists the connections that a query selects.
func (p *Answers) connectionRecords(q query) []api.Connection {
	all, who, marks := []api.Connection{}, p.holdersFor(q), p.connectionMarks()
	for c := range p.connections(q) {
		r := api.Connection{
			Zone: c.Zone, Proto: c.Orig.Proto, Orig: endpoints(&c.Orig), Reply: endpoints(&c.Reply),
			State: c.State, Mark: c.Mark, TimeoutNS: c.Timeout, Text: c.String(),
			Offloaded: c.Offloaded, Objects: who.behind(&c), Marks: marks.of(&c),
		}
		if c.Label != (conntrack.Label{}) {
			r.Label = c.Label.String()
		}
		all = append(all, r)
	}
	return all
}

func (p *Answers) writeConntrack(w io.Writer, q query) error {
	who, marks := p.holdersFor(q), p.connectionMarks()
	for c := range p.connections(q) {
		if q.stats {
			fmt.Fprintln(w, c.Verbose())
		} else {
			fmt.Fprintln(w, c.String())
		}
		if q.explain {
			writeConnectionObjects(who.behind(&c), w)
			if words := marks.of(&c); len(words) > 0 {
				fmt.Fprintf(w, "    # %s\n", strings.Join(words, ", "))
			}
		}
	}
	return nil
}

// answerFlush removes the connections that the parameters select; without parameters, all.
func (p *Answers) answerFlush(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := p.Connections.Flush(q.connections)
	if q.json {
		WriteJSON(w, api.Flushed{Flushed: n}, nil)
		return
	}
	fmt.Fprintf(w, "flushed %d connections\n", n)
}
