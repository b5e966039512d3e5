package conntrack

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Direction is one tuple of a connection. For ICMP the ports hold type and
// code, and ID the identifier.
type Direction struct {
	Tuple
	ID uint16 `json:"id,omitzero"`
}

// Conn is a connection in a dump.
type Conn struct {
	Zone    uint16        `json:"zone"`
	Orig    Direction     `json:"orig"`
	Reply   Direction     `json:"reply"`
	InPort  uint32        `json:"inPort"`    // where its first packet entered
	Timeout time.Duration `json:"timeoutNS"` // until it expires
	Mark    uint32        `json:"mark,omitzero"`
	Label   Label         `json:"label,omitzero"`
	// State is the protocol's state ("ESTABLISHED"). It is empty for protocols without states.
	State string `json:"state,omitzero"`
	// Tags is SCTP's verification tags, of the original and the reply direction.
	Tags [2]uint32 `json:"tags,omitzero"`
	// Offloaded says that the kernel forwards its packets.
	Offloaded bool `json:"offloaded,omitzero"`
}

// Dump is the live connections that f matches, in no useful order. No lock is held while the
// body of the loop runs. A connection that begins or ends meanwhile may be in the dump or not.
func (t *Table) Dump(f Filter) iter.Seq[Conn] {
	return func(yield func(Conn) bool) {
		now := t.clock()
		var e store.Entry
		var c Conn
		for slot := uint32(1); slot < t.arena.End(); slot++ {
			_, ok := t.arena.Read(slot, &e)
			if !ok || e.Expires <= now || f.Zone != nil && *f.Zone != e.Keys[tuple.Original].Zone {
				continue
			}
			if c.show(&e, now); f.Takes(&c) && !yield(c) {
				return
			}
		}
	}
}

// show sets c to a connection. It must be fast: a dump calls it for a million connections to
// find a few.
func (c *Conn) show(e *store.Entry, now int64) {
	k := &e.Keys[tuple.Original]
	c.Orig.set(k)
	c.Reply.set(&e.Keys[tuple.Reply])
	c.Zone, c.InPort, c.Timeout, c.Mark = k.Zone, e.Port, time.Duration(e.Expires-now), e.Mark
	c.Label.Hi, c.Label.Lo = e.Label.Hi, e.Label.Lo
	c.State, c.Tags[tuple.Original], c.Tags[tuple.Reply] = e.Name(k.Proto), 0, 0
	c.Offloaded = e.Flags&store.Offloaded != 0
	if k.Proto == packet.ProtoSCTP {
		c.Tags = e.Tag
	}
}

// set sets the direction to that of a key.
func (d *Direction) set(k *tuple.Key) {
	d.Tuple.set(k)
	d.ID = 0
	if k.ICMP() {
		d.ID = k.SrcPort
	}
}

// String is the line that ovs-appctl dpctl/dump-conntrack prints.
func (c *Conn) String() string { return c.line("") }

// Verbose is the line of dpctl/dump-conntrack -s. It has the time left, in whole seconds.
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
	if c.Offloaded {
		s += ",offloaded"
	}
	return s
}

func (c *Conn) protoinfo() string {
	switch {
	case c.State == "":
		return ""
	case c.Orig.Proto == packet.ProtoSCTP:
		return fmt.Sprintf(",protoinfo=(state=%s,vtag_orig=%d,vtag_reply=%d)", c.State, c.Tags[tuple.Original], c.Tags[tuple.Reply])
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

// Protocols that this package only names (IANA).
const (
	protoDCCP    = 33
	protoUDPLite = 136
)

// protoName is a protocol's name in a dump, or its number if it has no name.
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
