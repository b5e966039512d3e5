package offload

import (
	"encoding/binary"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

var (
	thisNode, farNode = [4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2}
	kinds             = []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE}
)

// wrapped is a frame in outer headers from one Node to another, without a UDP checksum.
func wrapped(kind tunnel.Kind, from, to [4]byte, vni uint32, inner []byte) []byte {
	n := kind.Overhead(false)
	b := append(make([]byte, n), inner...)
	binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv4)
	ip := packet.IPv4(b[14:])
	ip.Init()
	ip.SetTotalLen(uint16(len(ip)))
	ip.SetFlagsOffset(packet.IPv4DontFragment)
	ip.SetTTL(64)
	ip.SetProto(kind.Proto())
	copy(ip[12:], from[:])
	copy(ip[16:], to[:])
	ip.UpdateChecksum()
	if kind.Port() != 0 {
		udp := packet.UDP(ip[20:])
		udp.SetSrcPort(40000)
		udp.SetDstPort(kind.Port())
		udp.SetLength(uint16(len(udp)))
	}
	kind.Init(b[n-tunnel.HeaderLen:], vni)
	return b
}

// putFar makes the kernel take a frame out of a tunnel from the far Node, to interface out.
func putFar(t testing.TB, k *Kernel, kind tunnel.Kind, place uint32, inner []byte) *ports.OffloadEntry {
	t.Helper()
	s := put(t, k, place, inner)
	s.Parts = ports.OffloadEth | ports.OffloadUnwrap
	s.L4, s.Checksum = 34, 6
	if packet.Ethernet(inner).Type() == packet.EtherTypeIPv6 {
		s.L4 = 54
	}
	copy(s.Eth[:], inner)
	s.Hop = ports.OffloadHop{}
	copy(s.Hop[:], thisNode[:])
	binary.BigEndian.PutUint16(s.Hop[4:], kind.Port())
	kind.Init(s.Hop[8:], 7)
	key := keyOf(inner)
	if err := k.Delete(key); err != nil {
		t.Fatal(err)
	}
	copy(key[keyOuter:], farNode[:])
	if err := k.Put(key, place); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUnwrapped: each kind of frame comes out of each kind of tunnel as it is, and what it
// counts is the inner frame.
func TestUnwrapped(t *testing.T) {
	for _, kind := range kinds {
		k, trial := open(t)
		for i, inner := range [][]byte{packettest.TCP4(plain), packettest.TCP6(plain), packettest.UDP4(plain), packettest.UDP6(plain)} {
			s := putFar(t, k, kind, uint32(i), inner)
			s.MaxLen = uint32(len(inner))
			to, sent, taken, err := trial.FromUnderlay(kind, link, wrapped(kind, farNode, thisNode, 7, inner))
			if err != nil || !taken || to != out || string(sent) != string(inner) {
				t.Errorf("%v: frame %d: taken %v, to %d, %x, want %x; %v", kind, i, taken, to, sent, inner, err)
			}
			if s.Packets.Load() != 1 || s.Bytes.Load() != uint64(len(inner)) {
				t.Errorf("%v: frame %d: counted %d packets, %d bytes", kind, i, s.Packets.Load(), s.Bytes.Load())
			}
			if s.MaxLen--; s.MaxLen > 0 {
				if _, _, taken, _ := trial.FromUnderlay(kind, link, wrapped(kind, farNode, thisNode, 7, inner)); taken {
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
	at := func(i int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[i:], v); return b }
	}
	type change struct {
		kinds  int // how many kinds it is for, of kinds
		change func([]byte) []byte
	}
	for name, test := range map[string]change{
		"another Node's address":  {3, at(29, 9)},
		"another of this Node's":  {3, at(33, 9)},
		"for another host":        {3, at(0, 2, 0, 0, 0, 0, 9)},
		"IPv6":                    {3, at(12, 0x86, 0xdd)},
		"a VLAN":                  {3, at(12, 0x81, 0)},
		"options":                 {3, at(14, 0x46)},
		"more fragments":          {3, at(20, 0x60)},
		"a later fragment":        {3, at(21, 1)},
		"another protocol":        {3, at(23, packet.ProtoTCP)},
		"longer than it says":     {3, func(b []byte) []byte { return append(b, 0, 0) }},
		"shorter than it says":    {3, func(b []byte) []byte { return b[:len(b)-1] }},
		"another port":            {2, at(37, 1)},
		"a longer UDP header":     {2, at(39, 1)},
		"a UDP checksum":          {2, at(40, 1, 2)},
		"Geneve options":          {1, at(42, 1)},
		"a Geneve control packet": {1, at(43, 0x80)},
		"another Geneve payload":  {1, at(44, 8, 0)},
		"another network":         {2, at(48, 8)},
	} {
		for _, kind := range kinds[:test.kinds] {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				k, trial := open(t)
				s := putFar(t, k, kind, 0, inner)
				b := test.change(wrapped(kind, farNode, thisNode, 7, inner))
				if n := min(len(b), 34); b[12] == 8 {
					binary.BigEndian.PutUint16(b[24:], 0)
					binary.BigEndian.PutUint16(b[24:], packet.Checksum(b[14:n], 0))
				}
				if _, _, taken, err := trial.FromUnderlay(kind, link, b); taken || err != nil || s.Packets.Load() != 0 {
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
	for _, kind := range kinds {
		k, trial := open(t)
		s := putFar(t, k, kind, 0, inner)
		n := kind.Overhead(false)
		for name, spoil := range map[string]func(b []byte){
			"outer checksum": func(b []byte) { b[24]++ },
			"inner checksum": func(b []byte) { b[n+24]++ },
			"FIN":            func(b []byte) { b[n+47] |= packet.TCPFin },
			"sequence ahead": func(b []byte) { b[n+39] = 9 },
			"inner source":   func(b []byte) { b[n+29]++ },
			"inner Ethernet": func(b []byte) { b[n]++ },
		} {
			b := wrapped(kind, farNode, thisNode, 7, inner)
			spoil(b)
			if _, _, taken, err := trial.FromUnderlay(kind, link, b); taken || err != nil {
				t.Errorf("%v, %s: taken %v, %v", kind, name, taken, err)
			}
		}
		b := wrapped(kind, farNode, thisNode, 7, inner)
		if _, _, taken, err := trial.FromUnderlay(kind, link+1, b); taken || err != nil {
			t.Errorf("%v: by another link: taken %v, %v", kind, taken, err)
		}
		s.Parts = ports.OffloadEth
		if _, _, taken, err := trial.FromUnderlay(kind, link, b); taken || err != nil {
			t.Errorf("%v: by a pod's entry: taken %v, %v", kind, taken, err)
		}
		for _, other := range kinds {
			s.Parts |= ports.OffloadUnwrap
			b := wrapped(other, farNode, thisNode, 7, inner)
			if _, _, taken, err := trial.FromUnderlay(other, link, b); taken != (other == kind) || err != nil {
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
	for i, kind := range kinds {
		f.Add(uint8(i), wrapped(kind, farNode, thisNode, 7, base))
	}
	f.Fuzz(func(t *testing.T, which uint8, frame []byte) {
		if len(frame) < 54 || len(frame) > 2000 {
			return // as FuzzFilter
		}
		kind := kinds[int(which)%len(kinds)]
		s := putFar(t, k, kind, 0, base)
		before := s.Packets.Load()
		_, sent, taken, err := trial.FromUnderlay(kind, link, frame)
		if err != nil {
			t.Fatal(err)
		}
		n := kind.Overhead(false)
		if taken != (s.Packets.Load() == before+1) || taken && (string(sent) != string(frame[n:]) || *keyOf(sent) != *keyOf(base)) {
			t.Errorf("taken %v, counted %d, sent %x of %x", taken, s.Packets.Load()-before, sent, frame)
		}
	})
}
