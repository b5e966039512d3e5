package offload

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// tunnelOver is a kind of tunnel over IPv4 or IPv6.
type tunnelOver struct {
	tunnel.Kind
	over6 bool
}

func (k tunnelOver) String() string {
	if k.over6 {
		return k.Kind.String() + " over IPv6"
	}
	return k.Kind.String() + " over IPv4"
}

var tunnels = []tunnelOver{
	{tunnel.KindGeneve, false}, {tunnel.KindVXLAN, false}, {tunnel.KindGRE, false},
	{tunnel.KindGeneve, true}, {tunnel.KindVXLAN, true}, {tunnel.KindGRE, true},
}

// nodes is the addresses of this Node and of another one.
func (k tunnelOver) nodes() (this, far netip.Addr) {
	if k.over6 {
		return netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	}
	return netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
}

// at is where in a frame the UDP header begins, or that of the tunnel if it has none.
func (k tunnelOver) at() int { return k.inner() - k.Overhead(false) + 34 }

// inner is where in a frame the inner one begins.
func (k tunnelOver) inner() int { return k.Overhead(k.over6) }

// wrapped is a frame in outer headers from the far Node to this one, in network 7, without a
// UDP checksum.
func wrapped(k tunnelOver, inner []byte) []byte {
	n := k.inner()
	b := append(make([]byte, n), inner...)
	to, from := k.nodes()
	if k.over6 {
		binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv6)
		ip := packet.IPv6(b[14:])
		ip.SetFirst(0, 0x12345)
		ip.SetPayloadLen(uint16(len(ip) - packet.IPv6Len))
		ip.SetNextHeader(k.Proto())
		ip.SetHopLimit(64)
		ip.SetSrc(from)
		ip.SetDst(to)
	} else {
		binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv4)
		ip := packet.IPv4(b[14:])
		ip.Init()
		ip.SetTotalLen(uint16(len(ip)))
		ip.SetFlagsOffset(packet.IPv4DontFragment)
		ip.SetTTL(64)
		ip.SetProto(k.Proto())
		ip.SetSrc(from)
		ip.SetDst(to)
		ip.UpdateChecksum()
	}
	if k.Port() != 0 {
		udp := packet.UDP(b[k.at():])
		udp.SetSrcPort(40000)
		udp.SetDstPort(k.Port())
		udp.SetLength(uint16(len(udp)))
	}
	k.Init(b[n-tunnel.HeaderLen:], 7)
	return b
}

// putFar makes the kernel take a frame out of a tunnel from the far Node, to interface out.
func putFar(t testing.TB, k *Kernel, kind tunnelOver, place uint32, inner []byte) *ports.OffloadEntry {
	t.Helper()
	s := put(t, k, place, inner)
	s.Parts = ports.OffloadEth | ports.OffloadUnwrap | ports.OffloadParts(outers[outerOf(kind.Kind, kind.over6)].parts())
	s.L4, s.Checksum = 34, 6
	if packet.Ethernet(inner).Type() == packet.EtherTypeIPv6 {
		s.L4 = 54
	}
	copy(s.Eth[:], inner)
	s.Outer = ports.OffloadOuter{}
	copy(s.Outer[:], wrapped(kind, nil)[packet.EthernetLen:])
	_, from := kind.nodes()
	key := keyOf(inner)
	if err := k.Delete(key); err != nil {
		t.Fatal(err)
	}
	copy(key[keyOuter:], from.AsSlice()[len(from.AsSlice())-4:])
	if err := k.Put(key, place); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUnwrapped: each kind of frame comes out of each kind of tunnel as it is, and what it
// counts is the inner frame.
func TestUnwrapped(t *testing.T) {
	for _, kind := range tunnels {
		k, trial := open(t)
		for i, inner := range [][]byte{packettest.TCP4(plain), packettest.TCP6(plain), packettest.UDP4(plain), packettest.UDP6(plain)} {
			s := putFar(t, k, kind, uint32(i), inner)
			s.MaxLen = uint32(len(inner))
			to, sent, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link, wrapped(kind, inner))
			if err != nil || !taken || to != out || string(sent) != string(inner) {
				t.Errorf("%v: frame %d: taken %v, to %d, %x, want %x; %v", kind, i, taken, to, sent, inner, err)
			}
			if s.Packets.Load() != 1 || s.Bytes.Load() != uint64(len(inner)) {
				t.Errorf("%v: frame %d: counted %d packets, %d bytes", kind, i, s.Packets.Load(), s.Bytes.Load())
			}
			if s.MaxLen--; s.MaxLen > 0 {
				if _, _, taken, _ := trial.FromUnderlay(kind.Kind, kind.over6, link, wrapped(kind, inner)); taken {
					t.Errorf("%v: frame %d was taken though it is too long", kind, i)
				}
			}
		}
		for i := range k.controlAt[1:] {
			if run := k.controlAt[1+i].run.Load(); run&1 != 0 {
				t.Errorf("the count of processor %d is %d", i, run)
			}
		}
		if n := k.Dropped(); n != 0 {
			t.Errorf("%d packets were lost", n)
		}
	}
}

// TestNotUnwrapped changes one thing of the outer headers, or of the inner frame. The Node's
// stack gets the packet then.
func TestNotUnwrapped(t *testing.T) {
	inner := packettest.TCP4(plain)
	at := func(i int, v ...byte) func(tunnelOver, []byte) []byte {
		return func(_ tunnelOver, b []byte) []byte { copy(b[i:], v); return b }
	}
	behindIP := func(i int, v ...byte) func(tunnelOver, []byte) []byte {
		return func(k tunnelOver, b []byte) []byte { copy(b[k.at()+i:], v); return b }
	}
	udp, geneve, any, v4, v6 := 1, 2, 3, 4, 5
	is := map[int]func(tunnelOver) bool{
		udp: func(k tunnelOver) bool { return k.Port() != 0 }, geneve: func(k tunnelOver) bool { return k.Kind == tunnel.KindGeneve },
		any: func(tunnelOver) bool { return true },
		v4:  func(k tunnelOver) bool { return !k.over6 }, v6: func(k tunnelOver) bool { return k.over6 },
	}
	for name, test := range map[string]struct {
		of     int
		change func(tunnelOver, []byte) []byte
	}{
		"another Node's address":       {v4, at(29, 9)},
		"another Node's IPv6 address":  {v6, at(37, 9)},
		"another Node's IPv6 prefix":   {v6, at(22, 9)},
		"another of this Node's":       {v4, at(33, 9)},
		"another IPv6 of this Node's":  {v6, at(53, 9)},
		"another prefix of this one's": {v6, at(38, 9)},
		"for another host":             {any, at(0, 2, 0, 0, 0, 0, 9)},
		"IPv6":                         {v4, at(12, 0x86, 0xdd)},
		"IPv4":                         {v6, at(12, 8, 0)},
		"another version":              {v6, at(14, 0x50)},
		"a VLAN":                       {any, at(12, 0x81, 0)},
		"options":                      {v4, at(14, 0x46)},
		"more fragments":               {v4, at(20, 0x60)},
		"a later fragment":             {v4, at(21, 1)},
		"another protocol":             {v4, at(23, packet.ProtoTCP)},
		"another next header":          {v6, at(20, packet.ProtoTCP)},
		"an extension header":          {v6, at(20, 60)},
		"a fragment header":            {v6, at(20, 44)},
		"a jumbogram":                  {v6, at(18, 0, 0)},
		"longer than it says":          {any, func(_ tunnelOver, b []byte) []byte { return append(b, 0, 0) }},
		"shorter than it says":         {any, func(_ tunnelOver, b []byte) []byte { return b[:len(b)-1] }},
		"another port":                 {udp, behindIP(3, 1)},
		"a longer UDP header":          {udp, behindIP(5, 1)},
		"a UDP checksum":               {udp, behindIP(6, 1, 2)},
		"Geneve options":               {geneve, behindIP(8, 1)},
		"a Geneve control packet":      {geneve, behindIP(9, 0x80)},
		"another Geneve payload":       {geneve, behindIP(10, 8, 0)},
		"another network":              {any, func(k tunnelOver, b []byte) []byte { b[k.inner()-2]++; return b }},
	} {
		for _, kind := range tunnels {
			if !is[test.of](kind) {
				continue
			}
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				k, trial := open(t)
				s := putFar(t, k, kind, 0, inner)
				b := test.change(kind, wrapped(kind, inner))
				if n := min(len(b), 34); b[12] == 8 && !kind.over6 {
					binary.BigEndian.PutUint16(b[24:], 0)
					binary.BigEndian.PutUint16(b[24:], packet.Checksum(b[14:n], 0))
				}
				if _, _, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link, b); taken || err != nil || s.Packets.Load() != 0 {
					t.Errorf("taken %v, counted %d, %v", taken, s.Packets.Load(), err)
				}
			})
		}
	}
}

// TestNotUnwrappedInside: what the filter leaves to the switch, this program does, too; and
// what has a wrong outer checksum, another link, or a pod's entry.
func TestNotUnwrappedInside(t *testing.T) {
	inner := packettest.TCP4(plain)
	for _, kind := range tunnels {
		k, trial := open(t)
		s := putFar(t, k, kind, 0, inner)
		n := kind.inner()
		for name, spoil := range map[string]func(b []byte){
			"outer checksum": func(b []byte) { b[24]++ }, // over IPv6, the outer source
			"inner checksum": func(b []byte) { b[n+24]++ },
			"FIN":            func(b []byte) { b[n+47] |= packet.TCPFin },
			"sequence ahead": func(b []byte) { b[n+39] = 9 },
			"inner source":   func(b []byte) { b[n+29]++ },
			"inner Ethernet": func(b []byte) { b[n]++ },
		} {
			b := wrapped(kind, inner)
			spoil(b)
			if _, _, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link, b); taken || err != nil {
				t.Errorf("%v, %s: taken %v, %v", kind, name, taken, err)
			}
		}
		b := wrapped(kind, inner)
		if _, _, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link+1, b); taken || err != nil {
			t.Errorf("%v: by another link: taken %v, %v", kind, taken, err)
		}
		s.Parts = ports.OffloadEth
		if _, _, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link, b); taken || err != nil {
			t.Errorf("%v: by a pod's entry: taken %v, %v", kind, taken, err)
		}
		s.Parts |= ports.OffloadUnwrap | ports.OffloadParts(outers[outerOf(kind.Kind, kind.over6)].parts())
		for _, other := range tunnels {
			b := wrapped(other, inner)
			if _, _, taken, err := trial.FromUnderlay(other.Kind, other.over6, link, b); taken != (other == kind) || err != nil {
				t.Errorf("%v in %v: taken %v, %v", kind, other, taken, err)
			}
		}
	}
}

// FuzzUnwrap: whatever comes in, it is taken only as what it was put for, and what is
// sent is the inner frame.
func FuzzUnwrap(f *testing.F) {
	k, trial := open(f)
	base := packettest.UDP4(plain)
	for i, kind := range tunnels {
		f.Add(uint8(i), wrapped(kind, base))
	}
	f.Fuzz(func(t *testing.T, which uint8, frame []byte) {
		if len(frame) < 54 || len(frame) > 2000 {
			return // as FuzzFilter
		}
		kind := tunnels[int(which)%len(tunnels)]
		s := putFar(t, k, kind, 0, base)
		before := s.Packets.Load()
		_, sent, taken, err := trial.FromUnderlay(kind.Kind, kind.over6, link, frame)
		if err != nil {
			t.Fatal(err)
		}
		n := kind.inner()
		if taken != (s.Packets.Load() == before+1) || taken && (string(sent) != string(frame[n:]) || *keyOf(sent) != *keyOf(base)) {
			t.Errorf("taken %v, counted %d, sent %x of %x", taken, s.Packets.Load()-before, sent, frame)
		}
	})
}
