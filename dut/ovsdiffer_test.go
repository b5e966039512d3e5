package dut_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/packet"
)

// Which differences from Open vSwitch are meant: each number has a condition on
// the packet, on the connections that it met and on what both switches say, and
// what meets none fails the test. Before each packet both hold the same
// connections, as far as a dump shows; what it does not show is where one switch
// has taken note of a packet and the other has not (past.why).

// past is what no dump shows of a TCP connection.
type past struct {
	syn  [2]string // each direction's last segment, if it was a SYN
	sent [2]bool   // each direction has used a sequence number …
	next [2]uint32 // … and this is the one after all that it used
	fin  [2]bool   // each direction has sent a FIN
	why  string    // the difference since which the windows are not the same
}

// probe is one packet, and what became of it.
type probe struct {
	tcp          packet.TCP // nil for what is none
	tuples       []tuple    // as it came, and as it left at each tap
	theirs, ours []ctvectors.Output
	stray        bool // we counted it as outside the window
}

// compare puts a packet into both, and tells what left ours and whether that
// and the connections are the same.
func (p *pair) compare(port int, b []byte) (ours []ctvectors.Output, same bool) {
	strays := p.strays()
	q := probe{tuples: []tuple{tupleOf(b)}}
	if l := packet.ParseLayers(b); l.L4 != 0 && l.Proto == packet.ProtoTCP {
		q.tcp = packet.TCP(b[l.L4:l.End])
	}
	q.theirs, q.ours = p.both(port, b)
	p.trail = append(p.trail, fmt.Sprintf("   %q, %q", at(q.theirs, 0).State, at(q.ours, 0).State))
	q.stray = p.strays() != strays
	q.tuples[0].back = "none"
	for _, out := range slices.Concat(q.theirs, q.ours) {
		t := tupleOf(frameOf(p.T, out))
		if w := words(out.State); !w["snat"] && !w["dnat"] {
			t.back = "none"
		}
		q.tuples = append(q.tuples, t)
	}
	if !slices.Equal(q.theirs, q.ours) {
		p.differ(&q)
		return q.ours, false
	}
	return q.ours, q.tcp == nil || p.compareConnections(&q)
}

// frameOf is the frame that left at a tap, without the stamp.
func frameOf(t testing.TB, out ctvectors.Output) []byte {
	tail, err := hex.DecodeString(out.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return append(make([]byte, 12), tail...)
}

// strays is how many segments we have found outside the window.
func (p *pair) strays() string {
	return p.ours.must(map[string]any{"op": "ctl", "args": []string{"antrail/ct-out-of-window"}}).Ctl
}

// tuple is a TCP packet's addresses and ports, and those of its answer, as a
// dump prints them. A packet that is translated back shows the answer to the
// original direction.
type tuple struct{ there, back string }

func tupleOf(b []byte) tuple {
	l := packet.ParseLayers(b)
	if l.L4 == 0 || l.Proto != packet.ProtoTCP {
		return tuple{"none", "none"}
	}
	var src, dst fmt.Stringer
	if b[l.L3]>>4 == 4 {
		src, dst = packet.IPv4(b[l.L3:]).Src(), packet.IPv4(b[l.L3:]).Dst()
	} else {
		src, dst = packet.IPv6(b[l.L3:]).Src(), packet.IPv6(b[l.L3:]).Dst()
	}
	h := packet.TCP(b[l.L4:])
	const format = "(src=%s,dst=%s,sport=%d,dport=%d)"
	return tuple{fmt.Sprintf(format, src, dst, h.SrcPort(), h.DstPort()), fmt.Sprintf(format, dst, src, h.DstPort(), h.SrcPort())}
}

// name is what does not change in a connection's line of a dump.
func name(line string) string {
	id, _, _ := strings.Cut(line, ",timeout=")
	return id
}

// meets says whether the packet belongs to a connection, and to which of its
// directions.
func (q *probe) meets(id string) (dir int, ok bool) {
	if !strings.HasPrefix(id, "tcp,") { // one of UDP may have the same ports
		return 0, false
	}
	for dir, words := range [][2]string{{"orig=", "reply="}, {"reply=", "orig="}} {
		for _, t := range q.tuples {
			if strings.Contains(id, words[0]+t.there) || strings.Contains(id, words[1]+t.back) {
				return dir, true
			}
		}
	}
	return 0, false
}

// met are the connections of a dump that the packet belongs to.
func (q *probe) met(dump []string) (lines []string) {
	for _, line := range dump {
		if _, ok := q.meets(line); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

func (q *probe) has(flag uint16) bool { return q.tcp.Flags()&flag != 0 }

// syn says whether the packet is a SYN without ACK.
func (q *probe) syn() bool { return q.has(packet.TCPSyn) && !q.has(packet.TCPAck) }

// end is the sequence number after the segment.
func (q *probe) end() uint32 {
	end := q.tcp.Seq() + uint32(len(q.tcp.Payload()))
	for _, flag := range []uint16{packet.TCPSyn, packet.TCPFin} {
		if q.has(flag) {
			end++
		}
	}
	return end
}

// differ explains a difference of what left, or fails.
func (p *pair) differ(q *probe) {
	i := 0
	for i < min(len(q.theirs), len(q.ours)) && q.theirs[i] == q.ours[i] {
		i++
	}
	why := p.explain(q, i)
	if why == "" {
		p.Fatalf("%s\nOpen vSwitch %+v\nours         %+v\nthe first difference is output %d\nbefore\n%s",
			strings.Join(p.trail, "\n"), q.theirs, q.ours, i, strings.Join(p.dump, "\n"))
	}
	p.forget(why)
}

func at(list []ctvectors.Output, i int) ctvectors.Output {
	if i < len(list) {
		return list[i]
	}
	return ctvectors.Output{}
}

// explain is the number of a difference that is meant, by what both say of the
// packet at the output where they part.
func (p *pair) explain(q *probe, output int) string {
	their, our := words(at(q.theirs, output).State), words(at(q.ours, output).State)
	if output > 0 && their["new"] && len(q.ours) <= output {
		return "D14"
	}
	if their["inv"] && our["inv"] && (their["snat"] || their["dnat"]) {
		return "D15"
	}
	if q.tcp == nil {
		return ""
	}
	met := q.met(p.dump)
	zone := fmt.Sprintf("zone=%d,", at(q.theirs, output).Zone)
	switch unknown := !slices.ContainsFunc(met, func(l string) bool { return strings.Contains(l, zone) }); {
	case unknown && q.has(packet.TCPRst|packet.TCPFin) && their["new"] && our["inv"]:
		return "D2"
	case unknown && output > 0 && !q.has(packet.TCPSyn) && their["est"] && our["new"]:
		return "D6"
	case len(met) > 0:
		return p.explainKnown(q, met, their, our)
	}
	return ""
}

// explainKnown is explain for a TCP packet of known connections.
func (p *pair) explainKnown(q *probe, met []string, their, our map[string]bool) string {
	passes := our["est"] || our["new"]
	// A packet that is inv in one zone is not translated, and may belong to another connection in the next.
	refused := our["inv"] || their["snat"] != our["snat"] || their["dnat"] != our["dnat"]
	switch {
	case q.has(packet.TCPRst) && their["est"] && refused && slices.ContainsFunc(met, unanswered):
		return "D17"
	case q.has(packet.TCPRst) && (their["inv"] && passes || their["est"] && refused):
		return "D4"
	case q.syn() && passes:
		return "D5"
	case !q.has(packet.TCPRst) && q.stray && their["inv"] && passes:
		return "D3"
	case their["est"] && !their["rpl"] && our["new"] && unanswered(met[0]):
		return "D1"
	}
	return p.since(met)
}

// unanswered says whether only one side of a connection has been seen.
func unanswered(line string) bool { return strings.Contains(line, "(state=SYN_SENT)") }

// since is the earlier difference after which packets of a connection may be
// taken otherwise.
func (p *pair) since(met []string) string {
	for _, line := range met {
		if h := p.pasts[name(line)]; h != nil && h.why != "" {
			return h.why
		}
	}
	return ""
}

// words are the bits of a ct_state.
func words(state string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Split(state, "|") {
		all[w] = true
	}
	return all
}

// forget ends all conversations on both sides, after a difference that is meant.
func (p *pair) forget(why string) {
	p.why[why]++
	p.ovs.Call("dpctl/flush-conntrack")
	p.ours.must(map[string]any{"op": "ctl", "args": []string{"dpctl/flush-conntrack"}})
	p.talks, p.trail, p.dump, p.pasts = nil, nil, nil, map[string]*past{}
}

// compareConnections compares the dumps after a TCP packet that left both the
// same, and says whether they are equal. Where they are not, each connection
// that differs must be one that the packet met, and only one switch took the
// packet for more than a packet to let pass.
func (p *pair) compareConnections(q *probe) bool {
	theirs, ours := p.connections()
	why := ""
	for _, line := range slices.Concat(without(theirs, ours), without(ours, theirs)) {
		if why = p.explainLine(q, line); why == "" {
			p.failConnections(theirs, ours)
		}
	}
	if why != "" {
		p.forget(why)
		return false
	}
	p.remember(q, ours)
	return true
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(l string) bool { return slices.Contains(other, l) })
}

func (p *pair) failConnections(theirs, ours []string) {
	p.Helper()
	p.Fatalf("%s\nconnections\nOpen vSwitch %s\nours         %s", strings.Join(p.trail, "\n"),
		strings.Join(theirs, "\n             "), strings.Join(ours, "\n             "))
}

// connections are both dumps, without what has expired: Open vSwitch removes
// that when it comes to it, and prints it with timeout=0.
func (p *pair) connections() (theirs, ours []string) {
	expired := func(l string) bool { return strings.Contains(l, "timeout=0") }
	return slices.DeleteFunc(p.ovs.connections(), expired), slices.DeleteFunc(p.ours.connections(), expired)
}

// explainLine is the number of a difference in one connection.
func (p *pair) explainLine(q *probe, line string) string {
	dir, ok := q.meets(line)
	h := p.pasts[name(line)]
	switch {
	case !ok || h == nil:
		return ""
	case q.has(packet.TCPRst):
		return "D4"
	case q.syn():
		return "D5"
	case q.stray:
		return "D3"
	case h.why != "":
		return h.why
	case q.has(packet.TCPAck) && h.fin[1-dir] && int32(q.tcp.Ack()-h.next[1-dir]) < 0:
		return "D16"
	}
	return ""
}

// remember takes note of a packet that both took the same.
func (p *pair) remember(q *probe, dump []string) {
	pasts := map[string]*past{}
	for _, line := range dump {
		id := name(line)
		pasts[id] = p.pasts[id]
		if dir, ok := q.meets(id); ok {
			if pasts[id] == nil {
				pasts[id] = &past{}
			}
			pasts[id].notePacket(q, dir, line)
		}
	}
	p.pasts, p.dump = pasts, dump
}

// notePacket takes note of a packet of direction dir. Open vSwitch takes none of a SYN
// that is not a connection's first.
func (h *past) notePacket(q *probe, dir int, line string) {
	known := *h != past{}
	switch syn := fmt.Sprintf("%x", []byte(q.tcp)); {
	case !q.syn():
		h.syn[dir] = "no"
	case known && (h.syn[dir] != syn || !unanswered(line)):
		h.why = "D5"
	default:
		h.syn[dir] = syn
	}
	switch {
	case h.why != "":
	case q.stray:
		h.why = "D3"
	case q.has(packet.TCPRst) && !strings.Contains(line, "timeout=30,"): // only one may have closed it
		h.why = "D4"
	}
	if end := q.end(); end != q.tcp.Seq() && (!h.sent[dir] || int32(end-h.next[dir]) > 0) {
		h.sent[dir], h.next[dir] = true, end
	}
	h.fin[dir] = h.fin[dir] || q.has(packet.TCPFin)
}
