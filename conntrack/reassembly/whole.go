package reassembly

import (
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Joiner is a worker's memory for joining datagrams. The zero value is ready. The memory is
// allocated for the first datagram.
type Joiner struct {
	frame  *packet.Frame
	layers packet.Layers
}

// maxL2 is the largest number of bytes in front of the network header: Ethernet, two VLAN tags,
// an LLC/SNAP header.
const maxL2 = packet.EthernetLen + 2*packet.VLANLen + 8

// Join joins the datagram: the headers of the first fragment, as before the fragmentation, and
// all parts. The frame and its layers belong to the Joiner, which reuses them for the next
// datagram.
func (d *Datagram[T]) Join(j *Joiner) (*packet.Frame, *packet.Layers) {
	d.join(j)
	j.layers = packet.ParseLayers(j.frame.Bytes())
	return j.frame, &j.layers
}

// join writes the datagram to the Joiner's frame.
func (d *Datagram[T]) join(j *Joiner) {
	if j.frame == nil {
		j.frame = packet.NewFrame(make([]byte, packet.Headroom+maxL2+packet.IPv6Len+MaxDatagram), nil)
	}
	j.frame.Reset()
	first := d.pieces[0]
	n := first.at.Repeated + d.total
	j.frame.SetLen(n) // it fits, because Add has checked
	b := j.frame.Bytes()
	copy(b, first.Frame.Bytes()[:first.at.Repeated])
	for _, p := range d.pieces {
		copy(b[first.at.Repeated+p.at.Offset:], p.part())
	}
	if d.key.family == tuple.IPv4 {
		h := packet.IPv4(b[first.l3:])
		h.SetTotalLen(uint16(n - first.l3))
		h.SetFlagsOffset(h.FlagsOffset() & packet.IPv4DontFragment)
		h.UpdateChecksum()
		return
	}
	packet.IPv6(b[first.l3:]).SetPayloadLen(uint16(n - first.l3 - packet.IPv6Len))
	b[first.at.NextAt] = first.at.Next
}

// Scatter writes the datagram in b back into the fragments, after NAT may have changed it. b is
// the frame that Join returned.
func (d *Datagram[T]) Scatter(b []byte) {
	first := d.pieces[0]
	to := tuple.Key{Family: d.key.family}
	to.ReadAddresses(b[first.l3:])
	for _, p := range d.pieces {
		copy(p.part(), b[first.at.Repeated+p.at.Offset:])
		from := tuple.Key{Family: d.key.family}
		from.ReadAddresses(p.Frame.Bytes()[p.l3:])
		tuple.RewriteAddresses(p.Frame.Bytes()[p.l3:], &from, &to)
	}
}
