package trace

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// The form pcapng: a capture for Wireshark. Each port is an interface of it, named
// after its Pod if there is one. A packet is there as it entered and as it left by
// each port, with the same packet id; where it entered, its comments tell the verdict
// and the tables it passed.

// capture writes ways to a stream, each at once.
type capture struct {
	to    io.Writer
	w     *pcapgo.NgWriter // nil before the first interface
	ports map[string]int   // interfaces by name
}

// longest is how much of a comment or name is written: an option of pcapng has 16
// bits for its length.
const longest = 32 << 10

// Print implements Printer.
func (c *capture) Print(way Joined) error {
	for _, w := range way {
		if err := c.walk(w); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	return c.w.Flush()
}

// End implements Printer. A capture of nothing has one interface, as it must.
func (c *capture) End() error {
	if c.w == nil {
		if _, err := c.port("", &Port{Name: "any"}); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// walk is a packet at each port of one Node that it passed.
func (c *capture) walk(w *Walk) error {
	comments := []string{fmt.Sprintf("%s (id %s)", w.Verdict.Text, w.ID), strings.TrimSpace(Joined{w}.path())}
	err := c.packet(w, &w.InPort, w.Time, w.Frame, w.Length, pcapgo.NgEpbFlagDirectionInbound, comments)
	for i := range w.Steps {
		if s := &w.Steps[i]; err == nil && s.Kind == StepOutput {
			err = c.packet(w, s.Port, w.At(s), s.Frame, 0, pcapgo.NgEpbFlagDirectionOutbound, []string{"left in table " + s.Table + " (id " + w.ID + ")"})
		}
	}
	return err
}

// packet is a packet at a port. Its length is at least what there is of it, and what
// its headers say.
func (c *capture) packet(w *Walk, p *Port, at time.Time, frame []byte, length int, way pcapgo.NgEpbFlag, comments []string) error {
	port, err := c.port(w.Node, p)
	if err != nil {
		return err
	}
	options := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: way}}
	for _, s := range comments {
		options.Comments = append(options.Comments, clip(s))
	}
	if id, err := strconv.ParseUint(w.ID, 16, 64); err == nil {
		options.PacketID = &id
	}
	l := packet.ParseLayers(frame)
	length = max(length, len(frame), claimed(frame, &l))
	return c.w.WritePacketWithOptions(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: length, InterfaceIndex: port}, frame, options)
}

// port is the number of a port's interface, which is new at its first packet.
func (c *capture) port(node string, p *Port) (int, error) {
	name := cmp.Or(p.Pod, strings.TrimLeft(node+":"+p.label(), ":"))
	if n, ok := c.ports[name]; ok {
		return n, nil
	}
	about := p.String()
	if node != "" {
		about += " on " + node
	}
	i := pcapgo.NgInterface{Name: clip(name), Description: clip(about), LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
	n, err := 0, error(nil)
	if c.w == nil {
		c.w, err = pcapgo.NewNgWriterInterface(c.to, i, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "antrail"}})
	} else {
		n, err = c.w.AddInterface(i)
	}
	if err == nil {
		c.ports[name] = n
	}
	return n, err
}

// clip is a text that fits an option, and no broken character.
func clip(s string) string {
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
