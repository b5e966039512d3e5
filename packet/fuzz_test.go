package packet_test

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// FuzzViews lays every view of Layers over arbitrary bytes, reads all of it, and
// writes a checksum that must then verify.
func FuzzViews(f *testing.F) {
	for _, b := range canonical() {
		f.Add(b)
		if l := packet.ParseLayers(b); l.L4 != 0 && (l.Proto == packet.ProtoTCP || l.Proto == packet.ProtoUDP) {
			f.Add(pt.Undone(b, 0).Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := packet.ParseLayers(b)
		checkLayers(t, b, &l)
		if l.L3 != 0 {
			readNetwork(b[l.L3:], l.EtherType)
		}
		if l.L4 != 0 {
			readTransport(b[l.L4:l.End], l.Proto)
			checkChecksum(t, b, &l)
		}
		found := frame(b)
		if packet.FindPartial(found); found.Offload.None() == looksPartial(b, &l) {
			t.Errorf("found undone: %+v", found.Offload)
		}
		if !packet.AdmitOffload(found, &l) {
			t.Errorf("found undone, and not admitted: %+v", found.Offload)
		}
		fr := frame(b)
		if packet.PushVLAN(fr, packet.EtherTypeVLAN, 1) && (!packet.PopVLAN(fr) || !bytes.Equal(fr.Bytes(), b)) {
			t.Error("push and pop of a tag change the frame")
		}
	})
}

// looksPartial reports whether FindPartial would find a partial checksum.
func looksPartial(b []byte, l *packet.Layers) bool {
	if l.L4 == 0 || l.Frag != 0 {
		return false
	}
	p := b[l.L4:l.End]
	switch l.Proto {
	case packet.ProtoTCP:
		return packet.TCP(p).Checksum() == l.PseudoSum(b, len(p))
	case packet.ProtoUDP:
		return packet.UDP(p).Checksum() == l.PseudoSum(b, int(packet.UDP(p).Length()))
	}
	return l.Proto == packet.ProtoSCTP && packet.SCTP(p).Checksum() == 0
}

func checkLayers(t *testing.T, b []byte, l *packet.Layers) {
	if l.L3 > len(b) || l.End > len(b) || l.L4 > l.End {
		t.Errorf("outside %d bytes: %+v", len(b), l)
	}
	if l.End == 0 && (l.L4 != 0 || l.Proto != 0 || l.Frag != 0) {
		t.Errorf("read behind a broken header: %+v", l)
	}
	if g, ok := packet.ReadFragment(b, l); ok && (l.Frag == 0 || g.Repeated > g.Start || g.Start > g.End || g.End != l.End) {
		t.Errorf("read as %+v: %+v", g, l)
	} else if !ok && l.Frag != 0 {
		t.Errorf("not read as the fragment that it is: %+v", l)
	}
	if l.Frag&packet.FragLater != 0 && l.L4 != 0 {
		t.Errorf("transport header in a later fragment: %+v", l)
	}
}

func checkChecksum(t *testing.T, b []byte, l *packet.Layers) {
	if l.Proto == packet.ProtoUDP && !packet.UDP(b[l.L4:l.End]).Valid() {
		return
	}
	b = bytes.Clone(b)
	l.SetL4Checksum(b)
	if !l.L4Valid(b) {
		t.Errorf("the checksum just written does not verify: %+v", l)
	}
}

func readNetwork(b []byte, etherType uint16) {
	switch etherType {
	case packet.EtherTypeIPv4:
		h := packet.IPv4(b)
		_, _, _, _, _ = h.Src(), h.Dst(), h.ID(), h.TTL(), h.FragmentOffset()
		if h.Valid() {
			_ = h.Payload()
			h.ChecksumValid()
		}
	case packet.EtherTypeIPv6:
		h := packet.IPv6(b)
		_, _, _, _ = h.Src(), h.Dst(), h.FlowLabel(), h.TrafficClass()
		if h.Valid() {
			_ = h.Payload()
		}
	default:
		h := packet.ARP(b)
		_, _, _, _, _ = h.SHA(), h.SPA(), h.THA(), h.TPA(), h.Op()
	}
}

func readTransport(b []byte, proto uint8) {
	switch proto {
	case packet.ProtoTCP:
		h := packet.TCP(b)
		h.Options().WindowScale()
		_ = h.Payload()
	case packet.ProtoUDP:
		if h := packet.UDP(b); h.Valid() {
			_ = h.Payload()
		}
	case packet.ProtoSCTP:
		for c, ok := packet.SCTP(b).Chunks(), true; ok; {
			_, _, _, c, ok = c.Next()
		}
	case packet.ProtoICMPv6:
		if h := packet.ND(b); h.Valid() {
			for o, ok := h.Options(), true; ok; {
				_, _, o, ok = o.Next()
			}
		}
	case packet.ProtoICMP:
		_ = packet.ICMP(b).Quoted()
	}
}
