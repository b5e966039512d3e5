package conntrack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Table and model get the same packets and must give the same results. The packets are random
// here, and a fuzzer's in FuzzModel. After every ct() the tests also check what must hold for
// any packet: the invariants of ct_state (CT-2), and that right checksums stay right (CT-29).

// steps is how many steps a random test makes, ANTRAIL_STEPS when set.
func steps(t *testing.T, n int) int {
	text := os.Getenv("ANTRAIL_STEPS")
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ANTRAIL_STEPS: %v", err)
	}
	return n
}

// seeds is the seed that a random test begins from, ANTRAIL_SEED when set. It is
// printed when the test fails.
func seeds(t *testing.T) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("ANTRAIL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("ANTRAIL_SEED: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with ANTRAIL_SEED=%d", seed)
		}
	})
	return seed
}

// chooser makes choices: from a random source, or from a fuzzer's bytes.
type chooser interface {
	// choose is a number from 0 to n-1, n at most 256.
	choose(n int) int
}

type randomChooser struct{ *rand.Rand }

func (r randomChooser) choose(n int) int { return r.IntN(n) }

// fuzzChooser takes a byte for each choice, and 0 when there are no more.
type fuzzChooser struct{ left []byte }

func (f *fuzzChooser) choose(n int) int {
	if len(f.left) == 0 {
		return 0
	}
	b := f.left[0]
	f.left = f.left[1:]
	return int(b) % n
}

func oneOf[T any](c chooser, of ...T) T { return of[c.choose(len(of))] }

// pairing is a table and the model beside it.
type pairing struct {
	*bench
	chooser
	model  *model
	family tuple.Family
	recent []tuple.Key // tuples that were seen on the wire
}

func newPairing(t testing.TB, c chooser, f tuple.Family) *pairing {
	p := &pairing{bench: newBench(t, Config{Max: 1 << 14}), chooser: c, model: newModel(), family: f}
	p.SetDefaultLimit(0)
	return p
}

// protoGRE stands for protocols without ports (IANA).
const protoGRE = 47

var pairAddresses = map[tuple.Family][]string{
	tuple.IPv4: {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.96.0.10", "10.9.9.9"},
	tuple.IPv6: {"fd00::1", "fd00::2", "fd00::3", "fd00:96::10", "fd00:9::9"},
}

// addressNo is one of the few addresses that all packets have, so that they
// meet.
func (p *pairing) addressNo(i int) netip.Addr { return netip.MustParseAddr(pairAddresses[p.family][i]) }

// request is one of the actions that packets run through.
func (p *pairing) request() Request {
	r := Request{Zone: uint16(p.choose(2)), Commit: p.choose(3) > 0}
	if p.choose(4) == 0 {
		r.Mark, r.MarkMask = uint32(p.choose(256)), uint32(p.choose(256))
		r.Label, r.LabelMask = Label{1, uint64(p.choose(256))}, Label{uint64(p.choose(2)), uint64(p.choose(256))}
	}
	if p.choose(2) == 0 {
		r.NAT = p.nat(r.Commit)
	}
	r.Force = r.Commit && p.choose(16) == 0
	return r
}

func (p *pairing) nat(commit bool) *NAT {
	n := &NAT{}
	if !commit {
		return n
	}
	switch p.choose(5) {
	case 0:
		n.Source = true
		n.AddrMin = p.addressNo(4)
	case 1:
		n.Source = true
		n.AddrMin, n.PortMin, n.PortMax = p.addressNo(4), 5000, 5003
	case 2:
		n.Destination = true
		n.AddrMin, n.PortMin, n.PortMax = p.addressNo(1), 8080, 8080
	case 3:
		n.Destination = true
		n.AddrMin = p.addressNo(2)
	}
	n.AddrMax = n.AddrMin
	return n
}

// packet makes up a packet: often the next one of a connection that is there.
func (p *pairing) packet() (*modelPacket, []byte) {
	if len(p.recent) > 0 && p.choose(8) == 0 {
		return p.errorPacket()
	}
	k := tuple.Key{Family: p.family}
	if len(p.recent) > 0 && p.choose(4) > 0 {
		k = p.recent[p.choose(len(p.recent))]
		if p.choose(2) == 0 {
			k = k.Reversed()
		}
	} else {
		k = p.newKey()
	}
	m := &modelPacket{key: k}
	if k.Proto == packet.ProtoTCP {
		m.tcp = p.segment(k)
	}
	return m, wire(m)
}

func (p *pairing) newKey() tuple.Key {
	k := tuple.Key{Family: p.family, Src: tuple.AddressOf(p.addressNo(p.choose(3))), Dst: tuple.AddressOf(p.addressNo(p.choose(4)))}
	k.Proto = oneOf(p, uint8(packet.ProtoTCP), packet.ProtoTCP, packet.ProtoTCP, packet.ProtoUDP, packet.ProtoUDP, packet.ProtoICMP, protoGRE)
	switch k.Proto {
	case packet.ProtoTCP, packet.ProtoUDP:
		k.SrcPort, k.DstPort = oneOf(p, uint16(1), 500, 1000, 1024, 1025, 65535), oneOf(p, uint16(53), 80, 8080)
	case packet.ProtoICMP:
		k.SrcPort = uint16(p.choose(3))
		k.DstPort = uint16(oneOf(p, packet.ICMPEcho, packet.ICMPEcho, packet.ICMPEchoReply, packet.ICMPTimestamp)) << 8
		if p.family == tuple.IPv6 {
			k.Proto, k.DstPort = packet.ProtoICMPv6, uint16(oneOf(p, packet.ICMPv6Echo, packet.ICMPv6EchoReply))<<8
		}
	}
	return k
}

// segment is one of TCP: near where its side stands, if the connection is
// known in one of the zones.
func (p *pairing) segment(k tuple.Key) modelSegment {
	const s, a, f, r, push = packet.TCPSyn, packet.TCPAck, packet.TCPFin, packet.TCPRst, packet.TCPPsh
	g := modelSegment{
		seq: oneOf(p, uint32(1000), 1001, 100000, 1<<31, 1<<32-1), ack: oneOf(p, uint32(0), 1001, 2001, 1<<31),
		window: oneOf(p, uint32(0), 1, 512, 8192, 65535), length: oneOf(p, uint32(0), 0, 1, 100),
		flags: oneOf(p, uint16(s), s, s|a, s|a, a, a, a, a|push, a|f, a|f, r, r|a, 0, f, s|f, s|r, f|push|packet.TCPUrg, s|push),
	}
	if g.hasFlag(s) && p.choose(3) == 0 {
		g.scale, g.offered = uint8(p.choose(15)), true
	}
	k.Zone = uint16(p.choose(2))
	c, dir := p.model.find(k)
	if c == nil || p.choose(8) == 0 {
		return g
	}
	off := func() uint32 { return oneOf(p, uint32(0), 0, 0, 0, 0, 1, 1<<32-1, 100, 70000, 1<<32-70000) }
	g.seq, g.ack = c.sides[dir].next+off(), c.sides[1-dir].next+off()
	if c.synBy == 1-dir && p.choose(2) == 0 {
		g.ack = c.isn + 1
	}
	if g.seq == 0 && c.sides[dir].state == proto.TCPClosed {
		g.seq = 5000
	}
	return g
}

// errorPacket is an ICMP error about a packet that was on the wire.
func (p *pairing) errorPacket() (*modelPacket, []byte) {
	about := p.recent[p.choose(len(p.recent))]
	quoted := wire(&modelPacket{key: about, tcp: modelSegment{flags: packet.TCPAck}})
	from := oneOf(p, about.Dst.Addr(p.family), p.addressNo(4)).String()
	kind := byte(packet.ICMPUnreachable)
	if p.family == tuple.IPv6 {
		kind = 1 // RFC 4443, section 3.1: destination unreachable
	}
	n := 0
	if p.choose(2) == 0 { // as little as RFC 792 asks for
		n = len(quoted) - packet.EthernetLen - transportLen(about.Proto) + 8
	}
	b := errorFrame(from, about.Src.Addr(p.family).String(), kind, 1, quoted, n)
	return &modelPacket{key: about.Reversed(), related: true}, b
}

// transportLen is how long the transport part of wire is.
func transportLen(proto uint8) int {
	if proto == packet.ProtoTCP {
		return packet.TCPLen
	}
	return 12
}

// wire is the packet as bytes.
func wire(m *modelPacket) []byte {
	k := &m.key
	segment := make([]byte, 12)
	switch k.Proto {
	case packet.ProtoTCP:
		segment = wireTCP(k, &m.tcp)
	case packet.ProtoUDP:
		h := packet.UDP(segment)
		h.SetSrcPort(k.SrcPort)
		h.SetDstPort(k.DstPort)
		h.SetLength(uint16(len(h)))
	case packet.ProtoICMP, packet.ProtoICMPv6:
		h := packet.ICMP(segment)
		h.SetType(k.ICMPType())
		h.SetID(k.SrcPort)
	}
	return frame(k.Src.Addr(k.Family).String(), k.Dst.Addr(k.Family).String(), k.Proto, segment)
}

func wireTCP(k *tuple.Key, g *modelSegment) []byte {
	length := packet.TCPLen
	if g.offered {
		length += 4
	}
	h := packet.TCP(make([]byte, length+int(g.length)))
	h.SetSrcPort(k.SrcPort)
	h.SetDstPort(k.DstPort)
	h.SetSeq(g.seq)
	h.SetAck(g.ack)
	h.SetHeaderLen(length)
	h.SetFlags(g.flags)
	h.SetWindow(uint16(g.window))
	if g.offered {
		copy(h[packet.TCPLen:], []byte{packet.TCPOptionNop, packet.TCPOptionWindowScale, 3, g.scale})
	}
	return h
}

// step is a packet through one to three actions, or time that passes.
func (p *pairing) step() {
	if p.choose(64) == 0 {
		p.pass(oneOf(p, 100*time.Millisecond, time.Second, 10*time.Second, 31*time.Second, 2*time.Minute, 25*time.Hour))
		return
	}
	m, b := p.packet()
	p.enter(b)
	for range 1 + p.choose(3) {
		r := p.request()
		before := *m
		p.act(m, &r)
		if p.Failed() {
			p.Fatalf("packet %s\nthrough %+v nat %+v\nbefore it %+v", p.tuple(), r, r.NAT, before)
		}
		if p.verdict.Drop != DropNone {
			return
		}
	}
	p.remember(m.key)
}

// act is one action, on both sides.
func (p *pairing) act(m *modelPacket, r *Request) {
	got := p.ct(*r)
	left := p.left(r.Zone)
	if err := p.model.ct(m, r, left, p.verdict.Drop); err != nil {
		p.Errorf("%v", err)
		return
	}
	if p.verdict.Drop != DropNone {
		return
	}
	if p.meta.State != m.state || p.meta.Mark != m.mark || p.meta.Label != m.label || p.meta.tuple() != m.orig || p.meta.Zone != m.zone {
		p.Errorf("the table says %s, zone %d, mark %#x, label %v, of %v; the model %s, %d, %#x, %v, %v",
			got, p.meta.Zone, p.meta.Mark, p.meta.Label, p.meta.tuple(), stateText(m.state), m.zone, m.mark, m.label, m.orig)
	}
	if why := broken(p.meta.State); why != "" {
		p.Errorf("ct_state %s: %s", got, why)
	}
	if !tuple.ChecksumsValid(p.frame, &p.layers) {
		p.Error("it left with a bad checksum")
	}
}

// broken says which rule about ct_state does not hold (CT-2, CT-3).
func broken(s State) string {
	kinds := 0
	for _, kind := range []State{New, Established, Related, Invalid} {
		if s&kind != 0 {
			kinds++
		}
	}
	switch {
	case s&Tracked == 0:
		return "not tracked"
	case kinds != 1:
		return "it is exactly one of new, est, rel and inv"
	case s&(New|Invalid) != 0 && s&Reply != 0 && s&New == 0:
		return "nothing that is inv has a direction"
	case s&New != 0 && s&Reply != 0:
		return "rpl is never beside new"
	case s&(SNATed|DNATed) == SNATed|DNATed:
		return "one zone translates one side"
	}
	return ""
}

// left is the packet's key as it now stands in the frame.
func (p *pairing) left(zone uint16) tuple.Key {
	var s tuple.Packet
	if !s.Read(p.frame.Bytes(), &p.layers, zone) {
		p.Fatalf("the packet cannot be read any more")
	}
	return s.Key
}

func (p *pairing) remember(k tuple.Key) {
	k.Zone = 0
	if len(p.recent) < 64 {
		p.recent = append(p.recent, k)
		return
	}
	p.recent[p.choose(64)] = k
}

// pass turns both clocks; half of the time the table is swept.
func (p *pairing) pass(d time.Duration) {
	p.now += int64(d)
	p.model.now = p.now
	if p.choose(2) == 0 {
		p.Sweep(p.now)
	}
}

// compare compares all connections, and after a whole sweep their number.
func (p *pairing) compare() {
	got, want := p.lines(), p.model.lines()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for _, l := range got {
			if !slices.Contains(want, l) {
				p.Errorf("only in the table: %s", l)
			}
		}
		for _, l := range want {
			if !slices.Contains(got, l) {
				p.Errorf("only in the model: %s", l)
			}
		}
	}
	for range 70 { // a round takes at most a minute
		p.pass(time.Second)
		p.Sweep(p.now)
	}
	if n, live := p.Stats().Entries, len(p.model.lines()); n != live {
		p.Errorf("after a sweep %d connections are held, %d are live", n, live)
	}
}

// lines are the live connections, in order.
func (m *model) lines() (list []string) {
	for k, c := range m.conns {
		if c.expires > m.now && k == c.keys[tuple.Original] {
			list = append(list, c.line(m.now))
		}
	}
	slices.Sort(list)
	return list
}

// line is the connection as the table's dump shows it.
func (c *modelled) line(now int64) string {
	k := &c.keys[tuple.Original]
	d := Conn{
		Zone: k.Zone, Orig: *directionOf(k), Reply: *directionOf(&c.keys[tuple.Reply]),
		Timeout: time.Duration(c.expires - now), Mark: c.mark, Label: c.label,
	}
	if k.Proto == packet.ProtoTCP {
		d.State = max(c.sides[0].state, c.sides[1].state).String()
	}
	return d.Verbose()
}

// TestModel: table and model agree over a million random steps.
func TestModel(t *testing.T) {
	seed, n := seeds(t), steps(t, 1_000_000)
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			p := newPairing(t, randomChooser{rand.New(rand.NewPCG(seed, part))}, []tuple.Family{tuple.IPv4, tuple.IPv6}[part%2])
			for i := range n / parts {
				p.step()
				if i%5000 == 4999 {
					p.compare()
				}
			}
			s := p.Stats()
			if n >= 100_000 && (s.Created < uint64(n/parts/100) || s.OutOfWindow == 0 || s.Drops[DropNATExhausted] == 0 || s.Expired == 0) {
				t.Errorf("the steps were too tame: %+v", s)
			}
		})
	}
}

// FuzzModel: the same with a fuzzer's choices.
func FuzzModel(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 8 {
		seed := make([]byte, 200*n)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := &fuzzChooser{choices}
		p := newPairing(t, c, oneOf[tuple.Family](c, tuple.IPv4, tuple.IPv6))
		for len(c.left) > 0 {
			p.step()
		}
		p.compare()
	})
}
