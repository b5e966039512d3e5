package conntrack

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/antrail/antrail/packet"
)

// Direction is one tuple of a connection. For ICMP the ports hold type and
// code, and ID the identifier.
type Direction struct {
	Tuple
	ID uint16 `json:"id,omitzero"`
}

// Conn is a connection as a dump shows it.
type Conn struct {
	Zone    uint16        `json:"zone"`
	Orig    Direction     `json:"orig"`
	Reply   Direction     `json:"reply"`
	InPort  uint32        `json:"inPort"`    // where its first packet came in
	Timeout time.Duration `json:"timeoutNS"` // until it expires
	Mark    uint32        `json:"mark,omitzero"`
	Label   Label         `json:"label,omitzero"`
	// State is the protocol's state ("ESTABLISHED"), empty for protocols
	// without one.
	State string `json:"state,omitzero"`
	// Tags is SCTP's verification tags, of the original and the reply
	// direction.
	Tags [2]uint32 `json:"tags,omitzero"`
	// Away says that the kernel passes packets of it by itself.
	Away bool `json:"away,omitzero"`
}

// Dump is the live connections that f takes, in no useful order. No lock is
// held while the loop's body runs: a connection that comes or goes meanwhile
// may be in it or not.
func (t *Table) Dump(f Filter) iter.Seq[Conn] {
	return func(yield func(Conn) bool) {
		now := t.clock()
		var e entry
		var c Conn
		for slot := uint32(1); slot < t.arena.top.Load(); slot++ {
			_, ok := t.arena.read(slot, &e)
			if !ok || e.expires <= now || f.Zone != nil && *f.Zone != e.keys[original].zone {
				continue
			}
			if e.show(&c, now); f.Takes(&c) && !yield(c) {
				return
			}
		}
	}
}

// conn is the entry as a dump shows it.
func (e *entry) conn(now int64) (c Conn) {
	e.show(&c, now)
	return c
}

// show is conn in its place, whatever stands there: a million are shown to find
// a few.
func (e *entry) show(c *Conn, now int64) {
	k := &e.keys[original]
	k.showDirection(&c.Orig)
	e.keys[reply].showDirection(&c.Reply)
	c.Zone, c.InPort, c.Timeout, c.Mark = k.zone, e.port, time.Duration(e.expires-now), e.mark
	c.Label.Hi, c.Label.Lo = e.label.Hi, e.label.Lo
	c.State, c.Tags[original], c.Tags[reply] = "", 0, 0
	c.Away = e.flags&away != 0
	switch k.proto {
	case packet.ProtoTCP:
		c.State = max(e.tcp[original].state, e.tcp[reply].state).String()
	case packet.ProtoSCTP:
		c.State, c.Tags = e.state.String(), e.tag
	}
}

func (k *key) showDirection(d *Direction) {
	k.show(&d.Tuple)
	d.ID = 0
	if k.icmp() {
		d.ID = k.srcPort
	}
}

// String is the state's name in a dump. One name stands for both ends, as in
// Open vSwitch without -m, which folds FIN_WAIT_2 into TIME_WAIT.
func (s tcpState) String() string {
	return [...]string{"CLOSED", "SYN_SENT", "ESTABLISHED", "CLOSING", "TIME_WAIT", "TIME_WAIT"}[s]
}

// String is the state's name in a dump.
func (s sctpState) String() string {
	return [...]string{
		"CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTABLISHED",
		"SHUTDOWN_SENT", "SHUTDOWN_RECD", "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT",
	}[s]
}

// String is the line that ovs-appctl dpctl/dump-conntrack prints.
func (c *Conn) String() string { return c.line("") }

// Verbose is the line of dpctl/dump-conntrack -s: with the time left, in whole
// seconds.
func (c *Conn) Verbose() string { return c.line(fmt.Sprintf(",timeout=%d", c.Timeout/time.Second)) }

func (c *Conn) line(timeout string) string {
	s := fmt.Sprintf("%s,orig=(%v),reply=(%v)", protoName(c.Orig.Proto), &c.Orig, &c.Reply)
	if c.Zone != 0 {
		s += fmt.Sprintf(",zone=%d", c.Zone)
	}
	s += timeout
	if c.Mark != 0 {
		s += fmt.Sprintf(",mark=%d", c.Mark)
	}
	if c.Label != (Label{}) {
		s += ",labels=" + c.Label.String()
	}
	s += c.protoinfo()
	if c.Away {
		s += ",offloaded"
	}
	return s
}

func (c *Conn) protoinfo() string {
	switch {
	case c.State == "":
		return ""
	case c.Orig.Proto == packet.ProtoSCTP:
		return fmt.Sprintf(",protoinfo=(state=%s,vtag_orig=%d,vtag_reply=%d)", c.State, c.Tags[original], c.Tags[reply])
	}
	return ",protoinfo=(state=" + c.State + ")"
}

// String is the tuple in a dump.
func (d *Direction) String() string {
	s := "src=" + d.Src.String() + ",dst=" + d.Dst.String()
	if d.Proto == packet.ProtoICMP || d.Proto == packet.ProtoICMPv6 {
		return s + fmt.Sprintf(",id=%d,type=%d,code=%d", d.ID, d.SrcPort, d.DstPort)
	}
	return s + fmt.Sprintf(",sport=%d,dport=%d", d.SrcPort, d.DstPort)
}

// String is the label in hexadecimal, 0x0 for none.
func (l Label) String() string {
	if l.Hi == 0 {
		return fmt.Sprintf("0x%x", l.Lo)
	}
	return fmt.Sprintf("0x%x%016x", l.Hi, l.Lo)
}

// Protocols that only have a name here (IANA).
const (
	protoDCCP    = 33
	protoUDPLite = 136
)

// protoName is a protocol's name in a dump, its number when it has none.
func protoName(proto uint8) string {
	switch proto {
	case packet.ProtoICMP:
		return "icmp"
	case packet.ProtoIGMP:
		return "igmp"
	case packet.ProtoTCP:
		return "tcp"
	case packet.ProtoUDP:
		return "udp"
	case protoDCCP:
		return "dccp"
	case packet.ProtoICMPv6:
		return "icmpv6"
	case packet.ProtoSCTP:
		return "sctp"
	case protoUDPLite:
		return "udplite"
	}
	return strconv.Itoa(int(proto))
}
