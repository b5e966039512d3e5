package conntrack

import (
	"fmt"
	"time"

	"github.com/antrail/antrail/packet"
)

// The model is connection tracking as one would write it for a reader: a map, a
// clock, and the rules one after the other (CT-n of RULES.md). It knows packets
// as plain fields, never as bytes, and has no limits. Which port NAT chooses is
// up to the table; the model is told, and checks that it was a choice it had.

// side is one end of a modelled TCP connection.
type side struct {
	state       tcpState
	next, limit uint32
	window      uint32
	scale       uint8
	offered     bool // a window scale
	unseen      bool // its SYN was not seen
}

// modelled is a connection of the model.
type modelled struct {
	keys    [2]key // original and reply direction
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

// modelPacket is a packet and what it carries from ct() to ct().
type modelPacket struct {
	key     key // as its headers now are; the zone is that of the ct() at work
	related bool
	tcp     segment

	state State
	zone  uint16
	conn  *modelled
	dir   int
	seen  key
	mark  uint32
	label Label
	orig  Tuple
}

// model is the table.
type model struct {
	now      int64
	conns    map[key]*modelled // by both keys
	timeouts Timeouts
}

func newModel() *model { return &model{conns: map[key]*modelled{}, timeouts: DefaultTimeouts()} }

// find is the live connection of a key.
func (m *model) find(k key) (*modelled, int) {
	c := m.conns[k]
	switch {
	case c == nil || c.expires <= m.now:
		return nil, 0
	case c.keys[original] == k:
		return c, original
	}
	return c, reply
}

func (m *model) forget(c *modelled) {
	for _, k := range c.keys {
		if m.conns[k] == c {
			delete(m.conns, k)
		}
	}
}

// ct is one ct() action. left is the packet's key as the table let it go, and
// drop its verdict. What it returns is what the table did wrong.
func (m *model) ct(p *modelPacket, r *Request, left key, drop DropReason) error {
	p.key.zone = r.Zone
	if !m.recall(p, r) {
		for m.lookUp(p, r); p.conn != nil && (r.Force && p.dir == reply && !p.related || !m.run(p)); m.lookUp(p, r) {
			m.forget(p.conn)
		}
		if p.conn == nil {
			if err := m.begin(p, r, left, drop); err != nil || drop != DropNone {
				return err
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

// recall: the packet was found in this zone before, and nothing of its tuple
// has changed.
func (m *model) recall(p *modelPacket, r *Request) bool {
	return p.state&Tracked != 0 && p.zone == r.Zone && !r.Force && p.seen == p.key && p.conn != nil &&
		m.conns[p.conn.keys[original]] == p.conn && p.conn.expires > m.now && (p.state&Related != 0) == p.related
}

func (m *model) lookUp(p *modelPacket, r *Request) {
	translated := p.state & (SNATed | DNATed)
	p.conn = nil
	if translated != 0 && p.zone == r.Zone {
		if c, dir := m.find(p.key.reversed()); c != nil {
			p.conn, p.dir, p.state = c, 1-dir, translated
			return
		}
	}
	p.state = 0
	p.conn, p.dir = m.find(p.key)
}

// run runs the protocol of a known connection; false when it is over and the
// packet begins another.
func (m *model) run(p *modelPacket) bool {
	c := p.conn
	out := outcomeEstablished
	switch {
	case p.related:
		p.state |= Related
		if p.dir == reply {
			p.state |= Reply
		}
		return true
	case p.key.proto == packet.ProtoTCP:
		out = m.runTCP(c, p.dir, &p.tcp)
	default:
		c.replied = c.replied || p.dir == reply
		c.expires = m.now + int64(m.timeouts.simple(c))
		out = c.outcome()
	}
	switch {
	case out == outcomeStartOver:
		return false
	case out == outcomeInvalid:
		p.state = Invalid
	case out == outcomeNew:
		p.state |= New
	default:
		p.state |= Established
		if p.dir == reply {
			p.state |= Reply
		}
	}
	return true
}

func (c *modelled) outcome() outcome {
	if c.replied {
		return outcomeEstablished
	}
	return outcomeNew
}

func (t *Timeouts) simple(c *modelled) time.Duration {
	table := map[uint8][2]time.Duration{
		packet.ProtoUDP:  {t.UDPSingle, t.UDPReplied},
		packet.ProtoICMP: {t.ICMPSingle, t.ICMPReplied}, packet.ProtoICMPv6: {t.ICMPSingle, t.ICMPReplied},
	}
	both, ok := table[c.keys[original].proto]
	if !ok {
		both = [2]time.Duration{t.OtherSingle, t.OtherReplied}
	}
	if c.replied {
		return both[1]
	}
	return both[0]
}

// begin is a packet without a connection.
func (m *model) begin(p *modelPacket, r *Request, left key, drop DropReason) error {
	p.state = New
	if p.related || !p.opens() {
		p.state = Invalid
	}
	if p.state == Invalid || !r.Commit {
		if drop != DropNone {
			return fmt.Errorf("dropped: %s", drop)
		}
		return nil
	}
	c := &modelled{keys: [2]key{p.key, left.reversed()}, synBy: -1}
	if drop == DropNATExhausted {
		return m.exhausted(p, r)
	}
	if other, _ := m.find(p.key); other != nil {
		return fmt.Errorf("the key %+v is another connection's", p.key)
	}
	if err := m.allowed(p, r, c.keys[reply]); err != nil {
		return err
	}
	if r.NAT != nil && r.NAT.Source {
		c.nat = SNATed
	} else if r.NAT != nil && r.NAT.Destination {
		c.nat = DNATed
	}
	c.expires = m.now + int64(m.timeouts.simple(c))
	if p.key.proto == packet.ProtoTCP {
		m.openTCP(c, &p.tcp)
	}
	for _, k := range c.keys {
		if old := m.conns[k]; old != nil {
			m.forget(old) // it has expired: find says so
		}
	}
	m.conns[c.keys[reply]], m.conns[c.keys[original]] = c, c
	p.conn, p.dir = c, original
	return nil
}

// opens says whether the packet may begin a connection (CT-6, CT-9, D2).
func (p *modelPacket) opens() bool {
	switch p.key.proto {
	case packet.ProtoTCP:
		f := p.tcp.flags
		syn, ack := f&packet.TCPSyn != 0, f&packet.TCPAck != 0
		return p.tcp.sane() && f&(packet.TCPRst|packet.TCPFin) == 0 && syn != ack
	case packet.ProtoICMP:
		t := p.key.icmpType()
		return t == packet.ICMPEcho || t == packet.ICMPTimestamp
	case packet.ProtoICMPv6:
		return p.key.icmpType() == packet.ICMPv6Echo
	}
	return true
}

// choice is which reply keys a new connection may have: back, or that with
// another client port, which may be any, or any of the range if there is one.
type choice struct {
	back    key
	movable bool
	ranged  *NAT
}

// clientSide is where a reply key holds the client's port, or the identifier of
// an ICMP request.
func clientSide(k *key) *uint16 {
	if k.icmp() {
		return &k.srcPort
	}
	return &k.dstPort
}

// choiceOf is what CT-24 to CT-28 leave to NAT.
func choiceOf(k key, n *NAT) (c choice) {
	c.back = k.reversed()
	if n == nil || !n.Source && !n.Destination {
		return c
	}
	c.movable = k.hasPorts()
	if n.Source {
		c.back.dst = addressOf(n.AddrMin)
	} else {
		c.back.src = addressOf(n.AddrMin)
	}
	switch {
	case n.PortMin == 0 || k.icmp() || !c.movable:
	case n.Source:
		c.ranged = n
	default:
		c.back.srcPort = n.PortMin
	}
	return c
}

// allowed checks the reply key of a new connection (CT-25, CT-26).
func (m *model) allowed(p *modelPacket, r *Request, back key) error {
	if other, _ := m.find(back); other != nil {
		return fmt.Errorf("the reply key %+v is another connection's", back)
	}
	c := choiceOf(p.key, r.NAT)
	moved := back
	*clientSide(&moved) = *clientSide(&c.back)
	other, _ := m.find(c.back)
	switch port := *clientSide(&back); {
	case moved != c.back || back != c.back && !c.movable:
		return fmt.Errorf("the reply key is %+v, want %+v", back, c.back)
	case c.ranged != nil && (port < c.ranged.PortMin || port > c.ranged.PortMax):
		return fmt.Errorf("port %d is not in the range", port)
	case c.ranged == nil && back != c.back && other == nil:
		return fmt.Errorf("the port has moved without need, to %d", port)
	}
	return nil
}

// exhausted checks that no reply key was left.
func (m *model) exhausted(p *modelPacket, r *Request) error {
	c := choiceOf(p.key, r.NAT)
	low, high := int(*clientSide(&c.back)), int(*clientSide(&c.back))
	switch {
	case c.ranged != nil:
		low, high = int(c.ranged.PortMin), int(c.ranged.PortMax)
	case c.movable:
		return fmt.Errorf("exhausted, with a whole class of ports to choose from")
	}
	for ; low <= high; low++ {
		*clientSide(&c.back) = uint16(low)
		if other, _ := m.find(c.back); other == nil {
			return fmt.Errorf("exhausted, but %+v is free", c.back)
		}
	}
	return nil
}

// finish translates, marks, and says what the packet carries on.
func (m *model) finish(p *modelPacket, r *Request) {
	p.state |= Tracked
	p.zone, p.seen = r.Zone, p.key
	c := p.conn
	if c == nil {
		p.mark, p.label, p.orig = 0, Label{}, p.key.tuple()
		return
	}
	if p.state&Invalid == 0 {
		bits := c.nat
		if p.dir == reply && bits != 0 {
			bits ^= SNATed | DNATed
		}
		if r.NAT != nil && bits != 0 && p.state&(SNATed|DNATed) == 0 {
			p.state |= bits
			p.key = c.keys[1-p.dir].reversed()
			p.seen = p.key
		}
		c.mark = c.mark&^r.MarkMask | r.Mark&r.MarkMask
		c.label.Lo = c.label.Lo&^r.LabelMask.Lo | r.Label.Lo&r.LabelMask.Lo
		c.label.Hi = c.label.Hi&^r.LabelMask.Hi | r.Label.Hi&r.LabelMask.Hi
	}
	p.mark, p.label, p.orig = c.mark, c.label, c.keys[original].tuple()
}

// live counts what has not expired.
func (m *model) live() (n int) {
	for k, c := range m.conns {
		if c.expires > m.now && k == c.keys[original] {
			n++
		}
	}
	return n
}
