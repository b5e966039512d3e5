package flowcache

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// FuzzSignature changes a frame in one place: while its signature stays, so do
// its key, byte for byte, and where its headers are; and those are what
// flow.Extract finds. Of a signature without flow labels, the key's label aside.
func FuzzSignature(f *testing.F) {
	o := packettest.Options{Payload: []byte("payload")}
	for _, b := range [][]byte{
		packettest.TCP4(o), packettest.TCP6(o), packettest.UDP4(o), packettest.UDP6(o), packettest.ICMPEcho4(o), packettest.ICMPEcho6(o),
		packettest.SCTP4(o), packettest.ARPRequest(o), packettest.NeighborSolicit6(o), packettest.TCP4(packettest.Options{VLAN: 3}),
	} {
		for _, at := range []uint16{0, 13, 14, 15, 18, 20, 22, 30, 36, 47, 56} {
			f.Add(b, at, byte(1), at%2 == 0, at%4 < 2)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16, change byte, tunnelled, labels bool) {
		if len(b) == 0 || len(b) > 2000 {
			return
		}
		first, key, ok := signatureOf(t, b, tunnelled, labels)
		other := bytes.Clone(b)
		other[int(at)%len(b)] ^= change
		second, otherKey, otherOK := signatureOf(t, other, tunnelled, labels)
		if ok && otherOK && first == second && key != otherKey {
			t.Errorf("one Signature, two keys:\n%x\n%x", b, other)
		}
		if relabelled, is6 := relabel(b, uint32(at)<<8|uint32(change)); ok && is6 {
			if again, _, _ := signatureOf(t, relabelled, tunnelled, labels); !labels && again != first {
				t.Errorf("another flow label is another signature: %x", b)
			}
		}
		if third, _, _ := signatureOf(t, b, !tunnelled, labels); ok && third == first {
			t.Errorf("a tunnel makes no difference to %x", b)
		}
	})
}

// signatureOf is the signature and the key of a frame.
func signatureOf(t *testing.T, b []byte, tunnelled, labels bool) (Signature, flow.Key, bool) {
	fr := packet.FrameOf(b)
	if tunnelled {
		fr.Tunnel = packet.Tunnel{Src: netip.MustParseAddr("1.2.3.4"), Dst: netip.MustParseAddr("fd00::1"), ID: 7}
	}
	s := Signature{Labels: labels}
	var k flow.Key
	var l packet.Layers
	ok := s.Read(fr, 5, &l)
	if want := flow.Extract(fr, 5, &k); ok && l != want {
		t.Errorf("%x: headers at %+v, want %+v", b, l, want)
	}
	if !ok {
		return Signature{}, k, false
	}
	if HasPorts(l.Proto) && s.Tuple() != k.Tuple() {
		t.Errorf("%x: the tuple is %x, the key's %x", b, s.Tuple(), k.Tuple())
	}
	clear(s.words[s.n:])
	if !labels {
		k = withoutLabel(k)
	}
	return s, k, true
}

// relabel is an IPv6 frame with another flow label.
func relabel(b []byte, label uint32) ([]byte, bool) {
	if len(b) < sigL4v6 || packet.Ethernet(b).Type() != packet.EtherTypeIPv6 {
		return nil, false
	}
	b = bytes.Clone(b)
	h := packet.IPv6(b[sigL3:])
	h.SetFirst(h.TrafficClass(), label)
	return b, true
}

// withoutLabel is a key without IPv6's flow label.
func withoutLabel(k flow.Key) flow.Key {
	flow.FieldByID(flow.IPv6Label).Put(&k, flow.Value{}, flow.Ones(20))
	return k
}
