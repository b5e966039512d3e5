package agent

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
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Connections: listed and flushed, by filter.

// parseFilter reads which connections are meant: zone, address (or a range),
// port, state and mark (VALUE or VALUE/MASK).
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
		return fmt.Errorf("is neither an IP address nor a range of them")
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

// Connection is a tracked connection. Text is the line of
// ovs-appctl dpctl/dump-conntrack.
type Connection struct {
	Zone      uint16        `json:"zone"`
	Proto     uint8         `json:"proto"`
	Orig      Endpoints     `json:"orig"`
	Reply     Endpoints     `json:"reply"`
	State     string        `json:"state,omitempty"`
	Mark      uint32        `json:"mark,omitempty"`
	Label     string        `json:"label,omitempty"`
	Marks     []string      `json:"marks,omitempty"` // mark and label in words
	TimeoutNS time.Duration `json:"timeoutNS"`
	Offloaded bool          `json:"offloaded,omitempty"` // the kernel forwards packets of it by itself
	Text      string        `json:"text"`
	// Objects is there when it is asked for.
	Objects *ConnectionObjects `json:"objects,omitempty"`
}

// Endpoints are the ends of one direction, in the order of its packets. For
// ICMP the ports hold type and code, and ID the identifier.
type Endpoints struct {
	Src     netip.Addr `json:"src"`
	Dst     netip.Addr `json:"dst"`
	SrcPort uint16     `json:"srcPort"`
	DstPort uint16     `json:"dstPort"`
	ID      uint16     `json:"id,omitempty"`
}

func endpoints(d *conntrack.Direction) Endpoints {
	return Endpoints{d.Src, d.Dst, d.SrcPort, d.DstPort, d.ID}
}

// connections are those that a query takes.
func (p *pipeline) connections(q query) iter.Seq[conntrack.Conn] {
	return func(yield func(conntrack.Conn) bool) {
		n := 0
		for c := range p.ct.Dump(q.connections) {
			if n++; !yield(c) || n == q.limit {
				return
			}
		}
	}
}

// connectionMarks tells connections' marks and labels in words, each but once: of a
// hundred thousand connections few differ. It is for one question.
type connectionMarks struct {
	names tables.MarkNames
	known map[markAndLabel][]string
}

type markAndLabel struct {
	mark  uint32
	label conntrack.Label
}

func (p *pipeline) connectionMarks() *connectionMarks {
	return &connectionMarks{tables.MarkNames{Names: p.sw.Names()}, map[markAndLabel][]string{}}
}

func (m *connectionMarks) of(c *conntrack.Conn) []string {
	key := markAndLabel{c.Mark, c.Label}
	words, ok := m.known[key]
	if !ok {
		words = m.names.Conn(c.Mark, labelValue(c.Label))
		m.known[key] = words
	}
	return words
}

// connectionRecords lists the connections that a query takes.
func (p *pipeline) connectionRecords(q query) []Connection {
	all, who, marks := []Connection{}, p.holdersFor(q), p.connectionMarks()
	for c := range p.connections(q) {
		r := Connection{
			Zone: c.Zone, Proto: c.Orig.Proto, Orig: endpoints(&c.Orig), Reply: endpoints(&c.Reply),
			State: c.State, Mark: c.Mark, TimeoutNS: c.Timeout, Text: c.String(),
			Offloaded: c.Away, Objects: who.behind(&c), Marks: marks.of(&c),
		}
		if c.Label != (conntrack.Label{}) {
			r.Label = c.Label.String()
		}
		all = append(all, r)
	}
	return all
}

// labelValue is a label as the value of its field.
func labelValue(l conntrack.Label) flow.Value { return flow.Value{Hi: l.Hi, Lo: l.Lo} }

func (p *pipeline) writeConntrack(w io.Writer, q query) error {
	who, marks := p.holdersFor(q), p.connectionMarks()
	for c := range p.connections(q) {
		if q.stats {
			fmt.Fprintln(w, c.Verbose())
		} else {
			fmt.Fprintln(w, c.String())
		}
		if q.explain {
			who.behind(&c).write(w)
			if words := marks.of(&c); len(words) > 0 {
				fmt.Fprintf(w, "    # %s\n", strings.Join(words, ", "))
			}
		}
	}
	return nil
}

// Flushed is how many connections were removed.
type Flushed struct {
	Flushed int `json:"flushed"`
}

// answerFlush removes the connections that the parameters take, all without
// any.
func (p *pipeline) answerFlush(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := p.ct.Flush(q.connections)
	if q.json {
		writeJSON(w, Flushed{n}, nil)
		return
	}
	fmt.Fprintf(w, "flushed %d connections\n", n)
}
