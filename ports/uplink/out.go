package uplink

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// Transmit sends frames by the card if that is possible, and the others by the underlay port.
// Frames in the card's ring leave first. If a frame of a flow goes by the underlay port, the
// following ones of that flow do too. So a batch keeps the order of a flow.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.tx.Lock()
	defer p.tx.Unlock()
	card, rest, bytes := p.sorted(batch, *p.ways.now.Load())
	sent := 0
	if len(card) > 0 {
		sent = p.card.Transmit(card)
		p.count.Sent(sent, bytes)
	}
	if len(rest) > 0 {
		p.card.Flush()
		sent += p.Port.Transmit(rest)
	}
	clear(card)
	clear(rest)
	p.tx.card, p.tx.rest = card, rest
	return sent
}

// sorted divides a batch's frames by their way. bytes is that of the card's frames, without the
// outer headers that they have by then. The caller holds tx.
func (p *Port) sorted(batch []*packet.Frame, ways map[netip.Addr]way) (card, rest []*packet.Frame, bytes int) {
	card, rest = p.tx.card[:0], p.tx.rest[:0]
	whole := p.tx.whole[:0]
	for _, f := range batch {
		n, l := f.Len(), packet.ParseLayers(f.Bytes())
		flow := tunnel.FlowHash(f.Bytes(), &l)
		if !slices.Contains(whole, flow) && p.wrap(f, &l, flow, ways) {
			card = append(card, f)
			bytes += n
			continue
		}
		rest, whole = append(rest, f), append(whole, flow)
	}
	p.tx.whole = whole
	return card, rest, bytes
}

// wrap adds outer headers to a frame with headers at l. If the frame has to go by the underlay
// port, wrap leaves it unchanged and returns false.
func (p *Port) wrap(f *packet.Frame, l *packet.Layers, hash uint32, ways map[netip.Addr]way) bool {
	to := f.Tunnel.Dst.Unmap()
	w, known := ways[to]
	if !known || f.Offload.SegmentSize != 0 || f.Tunnel.Trace != 0 || f.Tunnel.Options != "" || ports.Refusal(f, p.config.MTU, ports.CarriesChecksum) != ports.None {
		return false
	}
	headers := p.config.Kind.Overhead(to.Is6()) // the inner Ethernet header has the length of the outer one
	if headers+f.Len()-packet.EthernetLen > w.mtu || f.Headroom() < headers {
		return false
	}
	if f.Offload.ChecksumPartial && !packet.CompleteChecksum(f, l) {
		return false
	}
	id := uint32(f.Tunnel.ID)
	b := f.Prepend(headers)
	p.config.Kind.Init(b[headers-tunnel.HeaderLen:], id)
	p.outer(f.Bytes(), to, hash, &w)
	f.Tunnel = packet.Tunnel{}
	return true
}

// outer writes the headers before the tunnel's own, which are already written.
func (p *Port) outer(b []byte, to netip.Addr, hash uint32, w *way) {
	copy(b[0:6], w.to[:])
	copy(b[6:12], w.from[:])
	etherType, n := uint16(packet.EtherTypeIPv4), packet.EthernetLen+packet.IPv4Len
	if to.Is6() {
		etherType, n = packet.EtherTypeIPv6, packet.EthernetLen+packet.IPv6Len
	}
	binary.BigEndian.PutUint16(b[12:], etherType)
	if p.config.Kind.Port() != 0 {
		h := packet.UDP(b[n:])
		h.SetSrcPort(p.SourcePort(hash))
		h.SetDstPort(p.config.Kind.Port())
		h.SetLength(uint16(len(h)))
		h.SetChecksum(0) // none: RFC 768, and RFC 8926, section 3.3, allow it over IPv4
	}
	if to.Is4() {
		p.outer4(packet.IPv4(b[packet.EthernetLen:]), to)
		return
	}
	p.outer6(packet.IPv6(b[packet.EthernetLen:]), to, hash)
	if p.config.Kind.Port() != 0 {
		h := packet.UDP(b[n:])
		h.SetChecksum(packet.NonZero(packet.Checksum(h, packet.IPv6(b[packet.EthernetLen:]).PseudoSum(packet.ProtoUDP, len(h)))))
	}
}

// ttl is Linux's default TTL.
const ttl = 64

func (p *Port) outer4(h packet.IPv4, to netip.Addr) {
	clear(h[:packet.IPv4Len])
	h.Init()
	h.SetTotalLen(uint16(len(h)))
	h.SetFlagsOffset(packet.IPv4DontFragment)
	h.SetTTL(ttl)
	h.SetProto(p.config.Kind.Proto())
	h.SetSrc(p.config.Local)
	h.SetDst(to)
	h.UpdateChecksum()
}

func (p *Port) outer6(h packet.IPv6, to netip.Addr, hash uint32) {
	h.SetFirst(0, hash&0xfffff)
	h.SetPayloadLen(uint16(len(h) - packet.IPv6Len))
	h.SetNextHeader(p.config.Kind.Proto())
	h.SetHopLimit(ttl)
	h.SetSrc(p.config.Local)
	h.SetDst(to)
}
