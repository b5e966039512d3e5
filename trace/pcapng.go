package trace

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/packet"
)

// The form pcapng: a capture for Wireshark. Its interfaces are the ports, each named after its
// Pod if there is one, and the tables whose entrance was recorded. A packet appears as it
// entered, as it came to those tables, and as it left by each port, with one packet id. Comments
// where it entered have the verdict and the tables.

// capture writes each way to a stream immediately.
type capture struct {
	to     io.Writer
	w      *ngWriter      // nil before the first interface
	places map[string]int // interfaces by name
}

// place is a port or a table that saw packets.
type place struct {
	name, about string
	way         direction
}

// longest is the longest comment or name that is written, in bytes. An option of pcapng has 16
// bits for its length.
const longest = 32 << 10

// Print implements Printer.
func (c *capture) Print(way Joined) error {
	for _, w := range way {
		if err := c.walk(w); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	return nil
}

// End implements Printer. A capture without packets has one interface, because pcapng requires
// one.
func (c *capture) End() error {
	if c.w != nil {
		return nil
	}
	_, err := c.place(place{name: "any", about: "nothing was seen"})
	return err
}

// walk writes a packet at each place of one Node that it passed.
func (c *capture) walk(w *Walk) error {
	comments := []string{fmt.Sprintf("%s (id %s)", w.Verdict.Text, w.ID), strings.TrimSpace(Joined{w}.path())}
	err := c.packet(w, w.port(&w.InPort, inbound), w.Time, w.Frame, w.Length, comments)
	for i := range w.Steps {
		switch s := &w.Steps[i]; {
		case err != nil:
		case s.Kind == StepOutput:
			comments := []string{"left in table " + s.Table + " (id " + w.ID + ")"}
			err = c.packet(w, w.port(s.Port, outbound), w.At(s), s.Frame, 0, comments)
		case s.Kind == StepEntry && s.Frame != nil:
			comments := []string{"enters table " + s.Table + " (id " + w.ID + ")", s.Packet}
			err = c.packet(w, w.table(s), w.At(s), s.Frame, 0, comments)
		}
	}
	return err
}

// port is a port as a place: default/client, or node-a:antrea-gw0.
func (w *Walk) port(p *Port, way direction) place {
	return place{cmp.Or(p.Pod, w.here(p.label())), p.String() + w.onNode(), way}
}

// table is the entrance of a table as a place: node-a:table SpoofGuard.
func (w *Walk) table(s *Step) place {
	return place{w.here("table " + s.Table), fmt.Sprintf("what enters table %s (%d)%s", s.Table, s.TableID, w.onNode()), unknownWay}
}

// here is a name with the Node in front, if that is known.
func (w *Walk) here(name string) string { return strings.TrimLeft(w.Node+":"+name, ":") }

func (w *Walk) onNode() string {
	if w.Node == "" {
		return ""
	}
	return " on " + w.Node
}

// packet writes a packet at a place. Its length is at least that of frame and that in its
// headers.
func (c *capture) packet(w *Walk, where place, at time.Time, frame []byte, length int, comments []string) error {
	n, err := c.place(where)
	if err != nil {
		return err
	}
	p := ngCaptured{place: n, way: where.way, at: at, frame: frame}
	for _, s := range comments {
		p.comments = append(p.comments, clip(s))
	}
	if id, err := strconv.ParseUint(w.ID, 16, 64); err == nil {
		p.id = &id
	}
	l := packet.ParseLayers(frame)
	p.length = max(length, len(frame), claimed(frame, &l))
	return c.w.packet(&p)
}

// place is the number of a place's interface. The first packet there creates the interface.
func (c *capture) place(p place) (int, error) {
	if n, ok := c.places[p.name]; ok {
		return n, nil
	}
	if c.w == nil {
		c.w = &ngWriter{to: c.to}
		if err := c.w.section("antrail"); err != nil {
			return 0, err
		}
	}
	n := len(c.places)
	c.places[p.name] = n
	return n, c.w.addInterface(clip(p.name), clip(p.about))
}

// clip cuts a text to an option's length, without breaking a character.
func clip(s string) string {
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
