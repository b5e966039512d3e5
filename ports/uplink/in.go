package uplink

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tunnel"
)

// Receive returns inner frames, those from the card first.
func (p *Port) Receive(batch []*packet.Frame) int {
	n := p.fromCard(batch)
	if n < len(batch) {
		n += p.Port.Receive(batch[n:])
	}
	return n
}

func (p *Port) fromCard(batch []*packet.Frame) (n int) {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.epoll < 0 {
		return 0
	}
	outer := p.rx.outer[:min(len(batch), len(p.rx.outer))]
	came := outer[:p.card.Receive(outer)]
	bytes, lost := 0, came[:0]
	for _, f := range came {
		if !p.unwrap(f) {
			lost = append(lost, f)
			continue
		}
		batch[n] = f
		n++
		bytes += f.Len()
	}
	packet.Release(lost)
	clear(outer)
	p.count.Received(n, bytes)
	return n
}

// isUnsummed says whether an outer UDP header is whole and has no checksum. That is also allowed
// in a tunnel over IPv6 (RFC 6935).
func isUnsummed(b []byte, l *packet.Layers) bool {
	h := packet.UDP(b[l.L4:l.End])
	return h.Valid() && h.Checksum() == 0
}

// unwrap removes the outer headers from a frame. The program has checked the packet's destination
// and protocol; unwrap checks lengths and checksums. It counts refused frames.
func (p *Port) unwrap(f *packet.Frame) bool {
	b := f.Bytes()
	l := packet.ParseLayers(b)
	if l.L4 == 0 || l.Frag != 0 || l.Proto != p.config.Kind.Proto() || l.EtherType == packet.EtherTypeIPv4 && !packet.IPv4(b[l.L3:]).ChecksumValid() {
		p.RefuseOuter()
		return false
	}
	start := l.L4
	if p.config.Kind.Port() != 0 {
		if !f.Offload.ChecksumPartial && !l.L4Valid(b) && !isUnsummed(b, &l) {
			p.RefuseOuter()
			return false
		}
		start += packet.UDPLen
	}
	src, dst := l.Addrs(b)
	inner, t, ok := p.Admit(b[min(start, l.End):l.End], src, dst)
	if !ok {
		return false
	}
	f.Offload = packet.Offload{}
	f.TrimFront(l.End - len(inner))
	f.SetLen(len(inner))
	f.Tunnel = t
	if p.config.Kind == tunnel.KindGRE {
		packet.FindPartial(f)
	}
	return true
}
