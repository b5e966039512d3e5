package conntrack

import (
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Frames and a table to send them through, for tests.

const (
	client  = "10.0.0.1"
	server  = "10.0.0.2"
	service = "10.96.0.10"
)

// frame builds an Ethernet frame around a transport segment and completes its
// checksums.
func frame(src, dst string, proto uint8, segment []byte) []byte {
	s, d := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	var b []byte
	if s.Is4() {
		b = make([]byte, packet.EthernetLen+packet.IPv4Len)
		packet.Ethernet(b).SetType(packet.EtherTypeIPv4)
		ip := packet.IPv4(b[packet.EthernetLen:])
		ip.Init()
		ip.SetTotalLen(uint16(packet.IPv4Len + len(segment)))
		ip.SetTTL(64)
		ip.SetProto(proto)
		ip.SetSrc(s)
		ip.SetDst(d)
		ip.UpdateChecksum()
	} else {
		b = make([]byte, packet.EthernetLen+packet.IPv6Len)
		packet.Ethernet(b).SetType(packet.EtherTypeIPv6)
		ip := packet.IPv6(b[packet.EthernetLen:])
		ip.SetFirst(0, 0)
		ip.SetPayloadLen(uint16(len(segment)))
		ip.SetNextHeader(proto)
		ip.SetHopLimit(64)
		ip.SetSrc(s)
		ip.SetDst(d)
	}
	b = append(b, segment...)
	l := packet.ParseLayers(b)
	l.SetL4Checksum(b)
	return b
}

func udpFrame(src, dst string, sport, dport uint16) []byte {
	h := packet.UDP(make([]byte, packet.UDPLen+3))
	h.SetSrcPort(sport)
	h.SetDstPort(dport)
	h.SetLength(uint16(len(h)))
	copy(h.Payload(), "abc")
	return frame(src, dst, packet.ProtoUDP, h)
}

func echoFrame(src, dst string, typ uint8, id uint16) []byte {
	h := packet.ICMP(make([]byte, packet.ICMPLen+4))
	h.SetType(typ)
	h.SetID(id)
	h.SetSeq(1)
	proto := uint8(packet.ProtoICMP)
	if netip.MustParseAddr(src).Is6() {
		proto = packet.ProtoICMPv6
	}
	return frame(src, dst, proto, h)
}

// errorFrame is an ICMP error that quotes n bytes of a frame's IP packet, all
// of it when n is 0.
func errorFrame(src, dst string, typ, code uint8, about []byte, n int) []byte {
	quoted := about[packet.EthernetLen:]
	if n > 0 {
		quoted = quoted[:n]
	}
	h := packet.ICMP(append(make([]byte, packet.ICMPLen), quoted...))
	h.SetType(typ)
	h.SetCode(code)
	h.SetRest(1500)
	proto := uint8(packet.ProtoICMP)
	if netip.MustParseAddr(src).Is6() {
		proto = packet.ProtoICMPv6
	}
	return frame(src, dst, proto, h)
}

// tcpText is a TCP segment in words.
type tcpText struct {
	flags    string // letters of SAFRPU
	seq, ack uint32
	length   int
	window   uint16 // 8192 when 0
	scale    int    // a Window Scale option, when above 0
}

var flagLetters = map[rune]uint16{
	'F': packet.TCPFin, 'S': packet.TCPSyn, 'R': packet.TCPRst,
	'P': packet.TCPPsh, 'A': packet.TCPAck, 'U': packet.TCPUrg,
}

func tcpFrame(src, dst string, sport, dport uint16, x tcpText) []byte {
	header := packet.TCPLen
	if x.scale > 0 {
		header += 4
	}
	h := packet.TCP(make([]byte, header+x.length))
	h.SetSrcPort(sport)
	h.SetDstPort(dport)
	h.SetSeq(x.seq)
	h.SetAck(x.ack)
	h.SetHeaderLen(header)
	var flags uint16
	for _, r := range x.flags {
		flags |= flagLetters[r]
	}
	h.SetFlags(flags)
	h.SetWindow(8192)
	if x.window > 0 {
		h.SetWindow(x.window)
	}
	if x.scale > 0 {
		copy(h[packet.TCPLen:], []byte{packet.TCPOptionNop, packet.TCPOptionWindowScale, 3, byte(x.scale)})
	}
	return frame(src, dst, packet.ProtoTCP, h)
}

// bench is a table, a clock to turn, and what the last packet became.
type bench struct {
	testing.TB
	*Table
	now     int64
	frame   *packet.Frame
	layers  packet.Layers
	meta    Meta
	verdict Verdict

	// Where the packet is looked up, in the zone asked last, as a batch that is warmed
	// has it; of every third packet that of one before.
	near     Near
	lastZone uint16
	entered  int
}

func newBench(t testing.TB, c Config) *bench {
	b := &bench{TB: t}
	c.Now = func() int64 { return b.now }
	if c.Seed == ([2]uint64{}) {
		c.Seed = [2]uint64{3, 4}
	}
	if c.Max == 0 {
		c.Max = 1 << 12
	}
	b.Table = NewTable(c)
	b.frame = packet.NewFrame(make([]byte, 4096), nil)
	return b
}

// enter brings a new packet in.
func (b *bench) enter(frame []byte) {
	b.frame.Reset()
	b.frame.SetBytes(frame)
	b.layers = packet.ParseLayers(b.frame.Bytes())
	b.meta = Meta{}
	if b.entered++; b.entered%3 != 0 {
		b.Near(&b.near, b.frame, &b.layers, b.lastZone)
	}
}

// ct runs one ct() on the packet and returns its ct_state.
func (b *bench) ct(r Request) string {
	r.Near, b.lastZone = &b.near, r.Zone
	b.verdict = b.Track(b.frame, &b.layers, &b.meta, &r, b.now)
	return stateText(b.meta.State)
}

// want enters a packet, runs one ct() on it and checks ct_state.
func (b *bench) want(frame []byte, r Request, state string) {
	b.Helper()
	b.enter(frame)
	if got := b.ct(r); got != state {
		b.Errorf("%s: ct_state %s, want %s", b.tuple(), got, state)
	}
}

// refused enters a packet, runs one ct() on it and checks why it is dropped.
func (b *bench) refused(frame []byte, r Request, why DropReason) {
	b.Helper()
	b.enter(frame)
	if b.ct(r); b.verdict.Drop != why {
		b.Errorf("%s: verdict %+v, want %s", b.tuple(), b.verdict, why)
	}
}

// tuple is the packet's addresses and ports as it now is.
func (b *bench) tuple() string {
	var s tuple.Packet
	if !s.Read(b.frame.Bytes(), &b.layers, 0) {
		return "unreadable"
	}
	return directionOf(&s.Key).String()
}

// wantTuple checks what NAT made of the packet, and that every checksum holds.
func (b *bench) wantTuple(want string) {
	b.Helper()
	if got := b.tuple(); got != want {
		b.Errorf("the packet left as %s, want %s", got, want)
	}
	if !tuple.ChecksumsValid(b.frame, &b.layers) {
		b.Errorf("%s: bad checksum", b.tuple())
	}
}

// lines is the dump with timeouts.
func (b *bench) lines() (lines []string) {
	for c := range b.Dump(Filter{}) {
		lines = append(lines, c.Verbose())
	}
	return lines
}

// wantDump checks the only connection's dump.
func (b *bench) wantDump(want ...string) {
	b.Helper()
	got := b.lines()
	if len(got) != len(want) {
		b.Fatalf("%d connections, want %d:\n%q", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			b.Errorf("dump\n got %s\nwant %s", got[i], want[i])
		}
	}
}

func (b *bench) warp(d time.Duration) { b.now += int64(d) }

var (
	commit = Request{Commit: true, Zone: 100}
	lookup = Request{Zone: 100}
	unNAT  = Request{Zone: 100, NAT: &NAT{}}
)

// commitNAT is ct(commit,zone=100,nat(…)).
func commitNAT(s string) Request {
	return Request{Commit: true, Zone: 100, NAT: parseNAT(s)}
}

// directionOf is the direction that a key shows.
func directionOf(k *tuple.Key) *Direction {
	d := new(Direction)
	d.set(k)
	return d
}
