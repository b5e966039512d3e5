package dataplane

import (
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Header rewriting writes a field into the key. If it is a header field, it is written into the
// frame at once, so that key and frame always agree. The checksums that cover it are updated by
// the difference (RFC 1624).

// base is the header that a field's place counts from.
type base uint8

const (
	inEthernet base = iota
	inIPv4
	inIPv6
	inARP
	inL4
	inSourceLink // neighbour discovery option: source link-layer address
	inTargetLink
)

// cover says which checksums cover a field, in addition to its own header's.
type cover uint8

const (
	noSum     cover = iota
	ipSum           // IPv4 header checksum
	pseudoSum       // the address is in the layer 4 pseudo header (and the IPv4 header)
	l4Sum           // inside layer 4
)

// place is where a header field lies in a frame.
type place struct {
	base  base
	off   int // bytes from the header's start
	size  int // bytes
	lsb   int // bits below the field in those bytes
	cover cover
}

// places lists the header fields that can be written. The VLAN tag's fields are not here, because
// the tag comes and goes (writeTag). For other fields, size is 0. A field with an IPv4 and an
// IPv6 place has its second one in places6.
var places = [256]place{
	flow.EthDst:     {inEthernet, 0, 6, 0, noSum},
	flow.EthSrc:     {inEthernet, 6, 6, 0, noSum},
	flow.IPTOS:      {inIPv4, 1, 1, 0, ipSum},
	flow.IPDSCP:     {inIPv4, 1, 1, 2, ipSum},
	flow.IPECN:      {inIPv4, 1, 1, 0, ipSum},
	flow.IPTTL:      {inIPv4, 8, 1, 0, ipSum},
	flow.IPSrc:      {inIPv4, 12, 4, 0, pseudoSum},
	flow.IPDst:      {inIPv4, 16, 4, 0, pseudoSum},
	flow.IPv6Label:  {inIPv6, 0, 4, 0, noSum},
	flow.IPv6Src:    {inIPv6, 8, 16, 0, pseudoSum},
	flow.IPv6Dst:    {inIPv6, 24, 16, 0, pseudoSum},
	flow.ArpOp:      {inARP, 6, 2, 0, noSum},
	flow.ArpSHA:     {inARP, 8, 6, 0, noSum},
	flow.ArpSPA:     {inARP, 14, 4, 0, noSum},
	flow.ArpTHA:     {inARP, 18, 6, 0, noSum},
	flow.ArpTPA:     {inARP, 24, 4, 0, noSum},
	flow.TCPSrc:     {inL4, 0, 2, 0, l4Sum},
	flow.TCPDst:     {inL4, 2, 2, 0, l4Sum},
	flow.UDPSrc:     {inL4, 0, 2, 0, l4Sum},
	flow.UDPDst:     {inL4, 2, 2, 0, l4Sum},
	flow.SCTPSrc:    {inL4, 0, 2, 0, l4Sum},
	flow.SCTPDst:    {inL4, 2, 2, 0, l4Sum},
	flow.ICMPType:   {inL4, 0, 1, 0, l4Sum},
	flow.ICMPCode:   {inL4, 1, 1, 0, l4Sum},
	flow.ICMPv6Type: {inL4, 0, 1, 0, l4Sum},
	flow.ICMPv6Code: {inL4, 1, 1, 0, l4Sum},
	flow.NDTarget:   {inL4, 8, 16, 0, l4Sum},
	flow.NDSLL:      {inSourceLink, 0, 6, 0, l4Sum},
	flow.NDTLL:      {inTargetLink, 0, 6, 0, l4Sum},
}

var places6 = [256]place{
	flow.IPTOS:  {inIPv6, 0, 2, 4, noSum},
	flow.IPDSCP: {inIPv6, 0, 2, 6, noSum},
	flow.IPECN:  {inIPv6, 0, 2, 4, noSum},
	flow.IPTTL:  {inIPv6, 7, 1, 0, noSum},
}

// setMAC writes an Ethernet address.
func (k *walk) setMAC(a *program.WriteMAC) {
	k.releaseHeld()
	copy(k.key[flow.FieldByID(a.Field).Off:], a.Addr[:])
	if b := k.frame.Bytes(); a.At+len(a.Addr) <= len(b) {
		copy(b[a.At:], a.Addr[:])
	}
}

// setSubfield writes bits of a field.
func (k *walk) setSubfield(dst flow.Subfield, v flow.Value) {
	k.setField(dst.Field, v.Shl(int(dst.Ofs)), flow.Ones(int(dst.N)).Shl(int(dst.Ofs)))
}

// setField writes v's bits under mask into a field.
func (k *walk) setField(id flow.FieldID, v, mask flow.Value) {
	f := flow.FieldByID(id)
	f.Put(&k.key, v, mask)
	if flow.IsTunMetadata(id) {
		k.key.SetTunnelOptionPresent(id)
	}
	if f.Off < flow.HeaderStart {
		return
	}
	k.releaseHeld()
	switch id {
	case flow.VlanTCI, flow.VlanVID, flow.VlanPCP:
		k.writeTag()
	default:
		k.write(id, f.Get(&k.key))
	}
}

// writeTag makes the frame's outer VLAN tag equal to the key's vlan_tci: a tag if
// packet.VLANPresent is set, otherwise none.
func (k *walk) writeTag() {
	tci := uint16(flow.FieldByID(flow.VlanTCI).Get(&k.key).Lo)
	present, tagged := tci&packet.VLANPresent != 0, k.layers.TCI != 0
	tci &^= packet.VLANPresent
	switch {
	case present && tagged:
		packet.VLAN(k.frame.Bytes()[12:]).SetTCI(tci)
	case present:
		k.changeVLAN(func() bool { return packet.PushVLAN(k.frame, packet.EtherTypeVLAN, tci) })
	case tagged:
		k.changeVLAN(func() bool { return packet.PopVLAN(k.frame) })
	}
}

// write writes a header field's value into the frame. If the packet lacks the header, write does
// nothing; the parser's prerequisites prevent entries that would write it.
func (k *walk) write(id flow.FieldID, v flow.Value) {
	p := places[id]
	if p6 := places6[id]; p6.size != 0 && k.layers.EtherType == packet.EtherTypeIPv6 {
		p = p6
	}
	start := k.start(p.base)
	b := k.frame.Bytes()
	if p.size == 0 || start < 0 || start+p.off+p.size > len(b) {
		return
	}
	// The checksum's 16-bit words that the field touches.
	from, to := start+p.off&^1, start+(p.off+p.size+1)&^1
	to = min(to, len(b))
	before := packet.Sum(b[from:to], 0)
	sctp, wrong := k.sctp(p.cover)
	putBits(b[start+p.off:start+p.off+p.size], v.Shl(p.lsb), flow.Ones(flow.FieldByID(id).Bits).Shl(p.lsb))
	after := packet.Sum(b[from:to], 0)
	k.fixChecksums(p.cover, before, after)
	if sctp != nil {
		sctp.SetChecksum(sctp.ComputeChecksum() ^ wrong)
	}
}

// sctp is the SCTP packet whose checksum covers a field, or nil, and the bits by which its
// checksum is wrong now. The caller keeps these bits wrong, so that a damaged packet does not
// become a sound one.
func (k *walk) sctp(c cover) (packet.SCTP, uint32) {
	l := &k.layers
	if c != l4Sum || k.frame.Offload.ChecksumPartial || l.Proto != packet.ProtoSCTP || l.L4 == 0 {
		return nil, 0
	}
	h := packet.SCTP(k.frame.Bytes()[l.L4:l.End])
	return h, h.Checksum() ^ h.ComputeChecksum()
}

// start is where a header begins in the frame, or -1 without one.
func (k *walk) start(h base) int {
	l := &k.layers
	switch {
	case h == inEthernet:
		return 0
	case h == inIPv4 && l.EtherType == packet.EtherTypeIPv4 && l.L3 != 0,
		h == inIPv6 && l.EtherType == packet.EtherTypeIPv6 && l.L3 != 0,
		h == inARP && l.EtherType == packet.EtherTypeARP && l.L3 != 0:
		return l.L3
	case h == inL4 && l.L4 != 0:
		return l.L4
	case h == inSourceLink:
		return k.linkOption(packet.NDOptionSourceLinkAddr)
	case h == inTargetLink:
		return k.linkOption(packet.NDOptionTargetLinkAddr)
	}
	return -1
}

// linkOption is the offset of a neighbour discovery option's address in the frame, or -1 without
// one.
func (k *walk) linkOption(typ uint8) int {
	l := &k.layers
	if l.L4 == 0 || l.Proto != packet.ProtoICMPv6 {
		return -1
	}
	h := packet.ND(k.frame.Bytes()[l.L4:l.End])
	if !h.Valid() {
		return -1
	}
	for o := h.Options(); ; {
		have, value, rest, ok := o.Next()
		switch {
		case !ok:
			return -1
		case have == typ && len(value) == 6:
			return l.End - len(rest) - len(value)
		}
		o = rest
	}
}

// putBits writes v under mask into big-endian bytes.
func putBits(b []byte, v, mask flow.Value) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = b[i]&^byte(mask.Lo) | byte(v.Lo)&byte(mask.Lo)
		v, mask = v.Shr(8), mask.Shr(8)
	}
}

// fixChecksums updates the checksums that cover changed words, given their sums before and after.
// It leaves out SCTP's CRC, which write handles.
func (k *walk) fixChecksums(c cover, before, after uint16) {
	b, l := k.frame.Bytes(), &k.layers
	if (c == ipSum || c == pseudoSum) && l.EtherType == packet.EtherTypeIPv4 {
		packet.AdjustChecksum(b[l.L3+10:], before, after)
	}
	if l.L4 == 0 || c != pseudoSum && c != l4Sum {
		return
	}
	switch o := &k.frame.Offload; {
	case o.ChecksumPartial: // the field holds the sum of the pseudo-header, which has no ports
		if c == pseudoSum {
			packet.AdjustSum(b[o.ChecksumStart+o.ChecksumOffset:], before, after)
		}
	case l.Proto == packet.ProtoTCP:
		packet.AdjustChecksum(b[l.L4+16:], before, after)
	case l.Proto == packet.ProtoUDP:
		packet.AdjustUDP(b[l.L4+6:], before, after)
	case l.Proto == packet.ProtoICMPv6, l.Proto == packet.ProtoICMP && c == l4Sum:
		packet.AdjustChecksum(b[l.L4+2:], before, after)
	}
}
