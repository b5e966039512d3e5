package conntrack

import (
	"fmt"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// The model is connection tracking written for readers: a map, a clock, and the rules one after
// the other (CT-n and D-n of RULES.md). It knows packets as plain fields, never as bytes, and has
// no limits. The table chooses NAT's ports. The model takes each choice and checks that it was
// allowed.
type model struct {
	now      int64
	conns    map[tuple.Key]*modelled // by both keys
	timeouts proto.Timeouts
}

// modelled is a connection.
type modelled struct {
	keys    [2]tuple.Key // original and reply direction
	sides   [2]side
	nat     State // what is done to a packet of the original direction
	replied bool
	picked  bool // began with a segment that was no SYN
	synBy   int  // direction of the SYN that isn't answered yet, -1 for none
	isn     uint32
	mark    uint32
	label   Label
	expires int64
}

// side is one end of a TCP connection.
type side struct {
	state       proto.TCPState
	next, limit uint32
	window      uint32
	scale       uint8
	offered     bool // a window scale
	unseen      bool // its SYN was not seen
}

// modelPacket is a packet and what it carries from ct() to ct().
type modelPacket struct {
	key     tuple.Key // as its headers now are; the zone is that of the ct() at work
	related bool
	tcp     modelSegment

	state State
	zone  uint16
	conn  *modelled
	dir   int
	seen  tuple.Key
	mark  uint32
	label Label
	orig  Tuple
}

func newModel() *model {
	return &model{conns: map[tuple.Key]*modelled{}, timeouts: proto.DefaultTimeouts()}
}

// find is the live connection of a key.
func (m *model) find(k tuple.Key) (*modelled, int) {
	c := m.conns[k]
	switch {
	case c == nil || c.expires <= m.now:
		return nil, 0
	case c.keys[tuple.Original] == k:
		return c, tuple.Original
	}
	return c, tuple.Reply
}

func (m *model) taken(k tuple.Key) bool {
	c, _ := m.find(k)
	return c != nil
}

func (m *model) removeConnection(c *modelled) {
	for _, k := range c.keys {
		if m.conns[k] == c {
			delete(m.conns, k)
		}
	}
}

// ct is one ct() action. left is the packet's key after the table's action, and drop its verdict.
// The result says how the table differs from the model.
func (m *model) ct(p *modelPacket, r *Request, left tuple.Key, drop DropReason) error {
	p.key.Zone = r.Zone
	if !m.restored(p, r) {
		for m.lookUp(p, r); p.conn != nil && (r.Force && p.dir == tuple.Reply && !p.related || !m.meet(p)); m.lookUp(p, r) {
			m.removeConnection(p.conn)
		}
		if p.conn == nil {
			p.state = p.opens()
			if p.state == New && r.Commit {
				if err := m.beginConnection(p, r.NAT, left.Reversed(), drop); err != nil || drop == DropNATExhausted {
					return err
				}
			}
		}
	}
	if drop != DropNone {
		return fmt.Errorf("dropped: %s", drop)
	}
	m.finish(p, r)
	if !p.related && left != p.key {
		return fmt.Errorf("it left as %+v, want %+v", left, p.key)
	}
	return nil
}

// restored: the packet was found in this zone before, and nothing of its tuple
// has changed (D6).
func (m *model) restored(p *modelPacket, r *Request) bool {
	return p.state&Tracked != 0 && p.zone == r.Zone && !r.Force && p.seen == p.key && p.conn != nil &&
		m.conns[p.conn.keys[tuple.Original]] == p.conn && p.conn.expires > m.now && (p.state&Related != 0) == p.related
}

// lookUp finds the packet's connection. If the packet was translated in this zone, its own key
// belongs to no connection, but the key of its reply does.
func (m *model) lookUp(p *modelPacket, r *Request) {
	if translated := p.state & (SNATed | DNATed); translated != 0 && p.zone == r.Zone {
		if c, dir := m.find(p.key.Reversed()); c != nil {
			p.conn, p.dir, p.state = c, 1-dir, translated
			return
		}
	}
	p.state = 0
	p.conn, p.dir = m.find(p.key)
}

// meet runs the protocol of a known connection; false when it is over and the
// packet begins another.
func (m *model) meet(p *modelPacket) bool {
	c, s := p.conn, Related
	switch {
	case p.related:
	case p.key.Proto == packet.ProtoTCP:
		s = m.runTCP(c, p.dir, &p.tcp)
	default:
		c.replied = c.replied || p.dir == tuple.Reply
		s = c.state()
		m.expire(c)
	}
	switch {
	case s == Invalid:
		p.state = Invalid
	case s != New && p.dir == tuple.Reply:
		p.state |= s | Reply
	default:
		p.state |= s
	}
	return s != 0
}

func (c *modelled) state() State {
	if c.replied {
		return Established
	}
	return New
}

// opens is New for a packet that may begin a connection, else Invalid (CT-6,
// CT-9, D2).
func (p *modelPacket) opens() State {
	ok, g, t := true, &p.tcp, p.key.ICMPType()
	switch p.key.Proto {
	case packet.ProtoTCP:
		ok = g.sane() && !g.hasFlag(packet.TCPRst|packet.TCPFin) && g.hasFlag(packet.TCPSyn) != g.hasFlag(packet.TCPAck)
	case packet.ProtoICMP:
		ok = t == packet.ICMPEcho || t == packet.ICMPTimestamp
	case packet.ProtoICMPv6:
		ok = t == packet.ICMPv6Echo
	}
	if ok && !p.related {
		return New
	}
	return Invalid
}

// beginConnection makes a connection with the reply key that NAT chose (CT-21).
func (m *model) beginConnection(p *modelPacket, n *NAT, back tuple.Key, drop DropReason) error {
	if err := m.chosen(p.key, back, n, drop == DropNATExhausted); err != nil || drop != DropNone {
		return err
	}
	c := &modelled{keys: [2]tuple.Key{p.key, back}, synBy: -1}
	if n != nil && n.Source {
		c.nat = SNATed
	} else if n != nil && n.Destination {
		c.nat = DNATed
	}
	if p.key.Proto == packet.ProtoTCP {
		c.openTCP(&p.tcp)
	}
	m.expire(c)
	for _, k := range c.keys {
		if old := m.conns[k]; old != nil {
			m.removeConnection(old) // it has expired: find says so
		}
	}
	m.conns[back], m.conns[p.key] = c, c
	p.conn, p.dir = c, tuple.Original
	return nil
}

// chosen checks the reply key that a new connection got, or, when it is said
// that there was none left, that (CT-24 to CT-28). want is the key that it has
// to be but for the client's port, which may be one of low to high, and must be
// want's if that is free and n gives no range.
func (m *model) chosen(k, back tuple.Key, n *NAT, exhausted bool) error {
	want, ranged, movable := k.Reversed(), false, false
	client := func(of *tuple.Key) *uint16 { // where a reply key holds it, or an identifier
		if of.ICMP() {
			return &of.SrcPort
		}
		return &of.DstPort
	}
	if n != nil && (n.Source || n.Destination) {
		movable = k.HasPorts()
		ported := movable && n.PortMin != 0 && !k.ICMP()
		ranged = ported && n.Source
		switch {
		case n.Source:
			want.Dst = tuple.AddressOf(n.AddrMin)
		case ported:
			want.Src, want.SrcPort = tuple.AddressOf(n.AddrMin), n.PortMin
		default:
			want.Src = tuple.AddressOf(n.AddrMin)
		}
	}
	low, high := int(*client(&want)), int(*client(&want))
	if ranged {
		low, high = int(n.PortMin), int(n.PortMax)
	} else if movable {
		low, high = 0, 1<<16-1
	}
	if exhausted {
		for port := low; port <= high; port++ {
			if *client(&want) = uint16(port); !m.taken(want) {
				return fmt.Errorf("exhausted, but %+v is free", want)
			}
		}
		return nil
	}
	port, moved := int(*client(&back)), back
	*client(&moved) = *client(&want)
	switch {
	case m.taken(k) || m.taken(back):
		return fmt.Errorf("the key %+v or the reply key %+v is another connection's", k, back)
	case moved != want || port < low || port > high:
		return fmt.Errorf("the reply key is %+v, want %+v with port %d to %d", back, want, low, high)
	case !ranged && back != want && !m.taken(want):
		return fmt.Errorf("the port has moved without need, to %d", port)
	}
	return nil
}

// finish translates, marks, and says what the packet carries on (CT-3, CT-4,
// CT-22).
func (m *model) finish(p *modelPacket, r *Request) {
	p.state |= Tracked
	p.zone, p.seen = r.Zone, p.key
	c := p.conn
	if c == nil {
		p.mark, p.label, p.orig = 0, Label{}, directionOf(&p.key).Tuple
		return
	}
	if p.state&Invalid == 0 {
		bits := c.nat
		if p.dir == tuple.Reply && bits != 0 {
			bits ^= SNATed | DNATed
		}
		if r.NAT != nil && bits != 0 && p.state&(SNATed|DNATed) == 0 {
			p.state |= bits
			p.key = c.keys[1-p.dir].Reversed()
			p.seen = p.key
		}
		c.mark = c.mark&^r.MarkMask | r.Mark&r.MarkMask
		c.label.Lo = c.label.Lo&^r.LabelMask.Lo | r.Label.Lo&r.LabelMask.Lo
		c.label.Hi = c.label.Hi&^r.LabelMask.Hi | r.Label.Hi&r.LabelMask.Hi
	}
	p.mark, p.label, p.orig = c.mark, c.label, directionOf(&c.keys[tuple.Original]).Tuple
}

// expire restarts a connection's timeout (CT-15 to CT-19).
func (m *model) expire(c *modelled) {
	t := &m.timeouts
	single, both := t.OtherSingle, t.OtherReplied
	switch c.keys[tuple.Original].Proto {
	case packet.ProtoTCP:
		single = m.waitTCP(c.sides[tuple.Original].state, c.sides[tuple.Reply].state)
		both = single
	case packet.ProtoUDP:
		single, both = t.UDPSingle, t.UDPReplied
	case packet.ProtoICMP, packet.ProtoICMPv6:
		single, both = t.ICMPSingle, t.ICMPReplied
	}
	if c.replied {
		single = both
	}
	c.expires = m.now + int64(single)
}
