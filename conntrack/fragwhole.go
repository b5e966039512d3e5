package conntrack

import (
	"github.com/antrail/antrail/packet"
)

// Joiner is the memory that a datagram is put together in, one for each worker.
// The zero value is ready; the memory comes with the first datagram.
type Joiner struct {
	frame  *packet.Frame
	layers packet.Layers
}

// maxL2 is the most that stands in front of the network header: Ethernet, two
// VLAN tags, an LLC/SNAP header.
const maxL2 = packet.EthernetLen + 2*packet.VLANLen + 8

// Track is a ct() action on a whole datagram: Table.Track on it in one piece,
// and then what NAT changed written into its fragments. m and r are the first
// fragment's.
func (d *Datagram[T]) Track(t *Table, j *Joiner, m *Meta, r *Request, now int64) Verdict {
	f := d.join(j)
	j.layers = packet.ParseLayers(f.Bytes())
	v := t.Track(f, &j.layers, m, r, now)
	if v.Rewritten {
		d.scatter(f.Bytes())
	}
	return v
}

// join puts the datagram together: the first fragment's headers, as they were
// before it was cut, and all parts.
func (d *Datagram[T]) join(j *Joiner) *packet.Frame {
	if j.frame == nil {
		j.frame = packet.NewFrame(make([]byte, packet.Headroom+maxL2+packet.IPv6Len+MaxDatagram), nil)
	}
	j.frame.Reset()
	first := d.pieces[0]
	n := first.at.Repeated + d.total
	j.frame.SetLen(n) // it fits: Add has checked
	b := j.frame.Bytes()
	copy(b, first.Frame.Bytes()[:first.at.Repeated])
	for _, p := range d.pieces {
		copy(b[first.at.Repeated+p.at.Offset:], p.part())
	}
	if d.key.family == ipv4 {
		h := packet.IPv4(b[first.l3:])
		h.SetTotalLen(uint16(n - first.l3))
		h.SetFlagsOffset(h.FlagsOffset() & packet.IPv4DontFragment)
		h.UpdateChecksum()
		return j.frame
	}
	packet.IPv6(b[first.l3:]).SetPayloadLen(uint16(n - first.l3 - packet.IPv6Len))
	b[first.at.NextAt] = first.at.Next
	return j.frame
}

// scatter writes the datagram in b, whose addresses and parts NAT may have
// changed, back into the fragments.
func (d *Datagram[T]) scatter(b []byte) {
	first := d.pieces[0]
	to := key{family: d.key.family}
	to.readAddresses(b[first.l3:])
	for _, p := range d.pieces {
		copy(p.part(), b[first.at.Repeated+p.at.Offset:])
		from := key{family: d.key.family}
		from.readAddresses(p.Frame.Bytes()[p.l3:])
		h := headers{b: p.Frame.Bytes(), l3: p.l3}
		h.rewriteAddresses(&from, &to)
	}
}
