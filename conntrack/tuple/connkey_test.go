package tuple

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// packets is one packet of each protocol that has ports or an identifier.
var packets = map[string][]byte{
	"tcp4": packettest.TCP4(packettest.Options{}), "tcp6": packettest.TCP6(packettest.Options{}),
	"udp4": packettest.UDP4(packettest.Options{}), "udp6": packettest.UDP6(packettest.Options{}),
	"udp4 with options": packettest.UDP4(packettest.Options{IPOptions: make([]byte, 8)}),
	"echo4":             packettest.ICMPEcho4(packettest.Options{ICMPID: 7}), "echo6": packettest.ICMPEcho6(packettest.Options{ICMPID: 7}),
}

// readKey reads a packet's key.
func readKey(t *testing.T, b []byte) (p Packet, l packet.Layers) {
	t.Helper()
	if l = packet.ParseLayers(b); !p.Read(b, &l, 3) {
		t.Fatalf("%x cannot be read", b)
	}
	return p, l
}

// TestWordsHoldTheKey: words are the whole key, and say zone and protocol.
func TestWordsHoldTheKey(t *testing.T) {
	for name, b := range packets {
		p, _ := readKey(t, b)
		w := p.Key.Words()
		var cell [len(Words{})]atomic.Uint64
		for i := range w {
			cell[i].Store(w[i])
		}
		var k Key
		k.Load(&cell)
		if k != p.Key || !k.Equal(&p.Key) || w.Zone() != 3 || w.Proto() != k.Proto {
			t.Errorf("%s: %+v became %+v", name, p.Key, k)
		}
		back := k.Reversed()
		bw := back.Words()
		if back.Reversed() != k || back.Equal(&k) || w.Equal(&bw) {
			t.Errorf("%s: the answer to %+v is %+v", name, k, back)
		}
	}
}

// TestRewrite: a packet that is rewritten shows the other key, its checksums stay
// right, and rewritten again it is as it was, to the byte.
func TestRewrite(t *testing.T) {
	for name, b := range packets {
		p, l := readKey(t, b)
		to := p.Key
		to.Src, to.Dst, to.SrcPort = to.Src.Add(1), to.Dst.Add(2), 1234
		if !to.ICMP() {
			to.DstPort = 4321
		}
		f := packet.FrameOf(b)
		p.Rewrite(f.Bytes(), &p.Key, &to, false)
		if got, _ := readKey(t, f.Bytes()); got.Key != to || !ChecksumsValid(f, &l) {
			t.Errorf("%s: %+v, want %+v; checksums valid: %v", name, got.Key, to, ChecksumsValid(f, &l))
		}
		if p.Rewrite(f.Bytes(), &to, &p.Key, false); !bytes.Equal(f.Bytes(), b) {
			t.Errorf("%s: rewritten and back\n%x, want\n%x", name, f.Bytes(), b)
		}
	}
}

// TestErrorShowsItsAnswer: the key of an ICMP error is that of an answer to the quoted
// packet, if the error is for that packet's sender.
func TestErrorShowsItsAnswer(t *testing.T) {
	sent := packets["udp4"]
	about, l := readKey(t, sent)
	o := packettest.Options{Src: packettest.Addr("10.9.9.9"), Dst: packettest.Addr("10.0.0.1")}
	b := packettest.ICMPError4(o, packet.ICMPUnreachable, 3, sent, packet.UDPLen)
	if p, _ := readKey(t, b); p.Key != about.Key.Reversed() || !p.Related {
		t.Errorf("%+v, want an answer to %+v", p, about.Key)
	}
	o.Dst = packettest.Addr("10.0.0.2")
	b = packettest.ICMPError4(o, packet.ICMPUnreachable, 3, sent, packet.UDPLen)
	l = packet.ParseLayers(b)
	if p := (Packet{}); p.Read(b, &l, 3) {
		t.Errorf("an error for somebody else is read as %+v", p)
	}
}
