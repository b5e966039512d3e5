package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/packet"
)

// The form vpp: a walk in the form of VPP's "show trace", for people who know that. Each node
// that the packet passed is a stanza: the time, its name, and indented lines. The first node is the
// driver of the port ("-input"), or the port itself if no port received the packet. Then come
// ethernet-input, ip4-input (or ip6-, arp-), each table, and the output port. Numbers of interfaces are those of
// ports.
//
// A table shows its entry. Some tables show more:
//
//	asks conntrack         the packet's tuple ("input sw_if_index …"), its state, NAT
//	matches destinations   the headers at that point
//	changes headers last   the packet as it will leave, in hexadecimal
//	outputs                the tuple ("output sw_if_index …")
//
// Details of VPP's own memory are left out: pkt info, dpo-idx, flow hash.

// rewrittenShown is the number of bytes printed of a rewritten packet, in lines of hexLine.
const (
	rewrittenShown = 60
	hexLine        = 32
)

// writeVPP writes a packet's way, Node by Node.
func writeVPP(w io.Writer, way Joined) error {
	var b strings.Builder
	for _, walk := range way {
		p := vppPrinter{b: &b, w: walk}
		p.walk()
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// vppPrinter prints one walk.
type vppPrinter struct {
	b *strings.Builder
	w *Walk
	// Before step first, the headers are as they came in. Behind step last, they are as they
	// leave by step output. output is -1 if there is none.
	first, last, output int
	shown               bool // the packet was printed as it leaves
}

func (p *vppPrinter) node(at time.Time, name string) {
	fmt.Fprintf(p.b, "%s:%06d: %s\n", at.Format("15:04:05"), at.Nanosecond()/1000, name)
}

func (p *vppPrinter) lines(lines ...string) {
	for _, l := range lines {
		if l != "" {
			p.b.WriteString("  " + l + "\n")
		}
	}
}

func (p *vppPrinter) walk() {
	w := p.w
	title := "Packet " + w.ID
	if w.Node != "" {
		title += " on " + w.Node
	}
	p.b.WriteString(title + "\n\n")
	p.findChanges()
	p.entrance()
	for i, steps := range w.visits() {
		p.table(i, i+len(steps))
	}
	p.b.WriteByte('\n')
}

// findChanges finds the first and the last change of headers, up to the first output.
func (p *vppPrinter) findChanges() {
	steps := p.w.Steps
	p.output = slices.IndexFunc(steps, func(s Step) bool { return s.Kind == StepOutput })
	p.first, p.last = len(steps), -1
	for i := range steps {
		if !steps[i].changesHeaders() {
			continue
		}
		p.first = min(p.first, i)
		if p.output < 0 || i < p.output {
			p.last = i
		}
	}
}

// notHeaders are prefixes of fields outside the packet.
var notHeaders = []string{"reg", "xreg", "xxreg", "ct_", "tun_", "metadata", "pkt_mark", "in_port"}

// changesHeaders reports whether the step changed the packet itself.
func (s *Step) changesHeaders() bool {
	return s.CT != nil && len(s.CT.NAT) > 0 || slices.ContainsFunc(s.Changes, Change.inPacket)
}

// inPacket reports whether the field is one of the packet's own.
func (c Change) inPacket() bool {
	return !slices.ContainsFunc(notHeaders, func(begin string) bool { return strings.HasPrefix(c.Field, begin) })
}

// frameAt is the packet before a step. It is nil between changes, where it is not known.
func (p *vppPrinter) frameAt(step int) []byte {
	switch {
	case step <= p.first:
		return p.w.Frame
	case p.output >= 0 && step > p.last && step <= p.output:
		return p.w.Steps[p.output].Frame
	}
	return nil
}

// entrance writes the nodes before the tables.
func (p *vppPrinter) entrance() {
	w := p.w
	p.node(w.Time, cmp.Or(w.InPort.Driver, w.InPort.label())+"-input")
	p.lines(fmt.Sprintf("port: %s hw_if_index %d len %d", w.InPort.label(), w.InPort.No, w.Length), w.undoneLine())
	if w.Tunnel != nil {
		p.lines(fmt.Sprintf("tunnel: %s vni %d", w.Tunnel.Src, w.Tunnel.VNI))
	}
	p.node(w.Time, "ethernet-input")
	p.lines(ethernetLines(w.Frame)...)
	if lines := networkLines(w.Frame); lines != nil {
		p.node(w.Time, strings.ToLower(etherName(w.Frame))+"-input")
		p.lines(lines...)
	}
}

// undoneLine is the packet's virtio-net header (VIRTIO 1.2, section 5.1.6).
func (w *Walk) undoneLine() string {
	u := Undone{}
	flags, gso, header := 0, 0, 0
	if w.Undone != nil {
		u, flags = *w.Undone, 1
	}
	if u.SegmentSize != 0 {
		gso, header = segments(w.Frame)
	}
	return fmt.Sprintf("hdr: flags 0x%02x gso_type 0x%02x hdr_len %d gso_size %d csum_start %d csum_offset %d num_buffers 1",
		flags, gso, header, u.SegmentSize, u.ChecksumStart, u.ChecksumOffset)
}

// segments is virtio-net's type of a frame that is to be cut, and the length of its headers. The
// types are 1 (TCP over IPv4), 4 (TCP over IPv6) and 5 (UDP).
func segments(frame []byte) (kind, header int) {
	frame, l := layersOf(frame)
	h := packet.TCP(frame[l.L4:])
	switch {
	case l.Proto != packet.ProtoTCP:
		return 5, l.L4 + packet.UDPLen
	case !h.Valid():
		return 0, 0
	case l.EtherType == packet.EtherTypeIPv6:
		return 4, l.L4 + h.HeaderLen()
	}
	return 1, l.L4 + h.HeaderLen()
}

// label is a port's name, or its number.
func (p *Port) label() string {
	if p.Name == "" {
		return fmt.Sprintf("port%d", p.No)
	}
	return p.Name
}

// table writes the steps of one table. The first one is its entry.
func (p *vppPrinter) table(from, to int) {
	s := &p.w.Steps[from]
	p.node(p.w.At(s), s.Table)
	switch {
	case s.Kind == StepEntry && s.Entry == nil:
		p.lines(fmt.Sprintf("table %d, no entry matches", s.TableID))
	case s.Kind == StepEntry:
		p.entry(s, from)
	}
	for i := from; i < to; i++ {
		p.step(&p.w.Steps[i], i)
	}
	if p.shown = p.shown || from > p.output; !p.shown && from <= p.last && p.last < to {
		p.rewritten()
	}
	for i := from; i < to; i++ {
		if s := &p.w.Steps[i]; s.Kind == StepOutput {
			p.leaves(s)
		}
	}
}

func (p *vppPrinter) entry(s *Step, at int) {
	match := cmp.Or(s.Entry.Match, "any")
	p.lines(fmt.Sprintf("table %d, priority %d, match: %s%s", s.TableID, s.Entry.Priority, match, bracket(s.Entry.Marks)), "actions: "+s.Entry.Actions)
	for _, o := range s.Entry.Objects {
		p.lines("for " + o.String())
	}
	if strings.Contains(match, "nw_dst=") || strings.Contains(match, "ipv6_dst=") {
		p.lines(networkLines(p.frameAt(at))...)
	}
}

// step writes the details of a step beyond its table's entry.
func (p *vppPrinter) step(s *Step, at int) {
	switch s.Kind {
	case StepCT:
		if !s.CT.Commit {
			p.lines(tupleLine(p.frameAt(at), "input", p.w.InPort.No))
		}
		p.lines(fmt.Sprintf("conntrack: sw_if_index %d, zone %d, state %s, mark 0x%x, label %s%s", p.w.InPort.No, s.CT.Zone, s.CT.State, s.CT.Mark, s.CT.Label, bracket(s.CT.Marks)))
		for _, n := range s.CT.NAT {
			p.lines(fmt.Sprintf("NAT: %s %s -> %s", n.End, n.Before, n.After))
		}
	case StepBucket:
		p.lines(fmt.Sprintf("group %d, bucket %d of %d%s", s.Bucket.Group, s.Bucket.Bucket, s.Bucket.Of, of(s.Bucket.Object)))
	case StepLearn:
		p.lines(fmt.Sprintf("learns table=%s, priority=%d,%s", s.Table, s.Entry.Priority, s.Entry.Match))
	case StepPacketIn:
		p.lines(s.Note)
	case StepWait:
		p.lines("waits for the rest of its datagram")
	case StepDrop:
		p.node(p.w.At(s), "error-drop")
		p.lines(s.Reason + ": " + s.Sentence)
	}
}

// rewritten writes the packet as it leaves, once.
func (p *vppPrinter) rewritten() {
	p.shown = true
	s := &p.w.Steps[p.output]
	p.lines(fmt.Sprintf("tx_sw_if_index %d : via %s", s.Port.No, s.Port.label()))
	at := 0
	for b := range slices.Chunk(s.Frame[:min(len(s.Frame), rewrittenShown)], hexLine) {
		p.lines(fmt.Sprintf("%08x: %x", at, b))
		at += hexLine
	}
}

// leaves writes an output: a stanza of its port.
func (p *vppPrinter) leaves(s *Step) {
	if !p.shown {
		p.rewritten()
	}
	p.lines(tupleLine(s.Frame, "output", s.Port.No))
	p.node(p.w.At(s), s.Port.label()+"-output")
	p.lines(s.Port.label())
	if s.Tunnel != nil {
		p.lines(fmt.Sprintf("tunnel: %s vni %d", s.Tunnel.Dst, s.Tunnel.VNI))
	}
	if s.Dropped {
		p.lines("no memory was left for it")
	}
	p.lines(ethernetLines(s.Frame)...)
	p.lines(networkLines(s.Frame)...)
}
