package tables

import (
	"math/bits"

	"github.com/antrail/antrail/flow"
)

// Protocols and ports of rules, as matches.

// matches are the matches of one protocol, port or range, in the families that
// have the protocol. OpenFlow has no field for the type of an IGMP message, so a
// match of IGMP covers all types of a group address.
func (l L4Match) matches(families []Family) (all []flow.Match) {
	for _, f := range families {
		switch {
		case l.Proto == 0:
			all = append(all, match(f.ip()))
		case dstPortField(l.Proto) != flow.FieldNone:
			all = append(all, l.ports(f)...)
		case l.familyOnly() == 0 || l.familyOnly() == f:
			all = append(all, match(f.proto(l.Proto), l.message()))
		}
	}
	return all
}

// familyOnly is the only family that has a protocol, or 0 if both have it.
func (l L4Match) familyOnly() Family {
	switch l.Proto {
	case protoICMP, protoIGMP:
		return IPv4
	case protoICMPv6:
		return IPv6
	}
	return 0
}

// ports are the matches of every pair of source and destination ports.
func (l L4Match) ports(f Family) (all []flow.Match) {
	for _, src := range portTerms(srcPortField(l.Proto), l.SrcPort, l.SrcEnd) {
		for _, dst := range portTerms(dstPortField(l.Proto), l.Port, l.EndPort) {
			all = append(all, match(f.proto(l.Proto), src, dst))
		}
	}
	return all
}

// portTerms match one port (last 0), a range, or any port (first 0).
func portTerms(id flow.FieldID, first, last uint16) (terms []term) {
	if first == 0 && last == 0 {
		return []term{func(*flow.Match) {}}
	}
	for _, b := range portBlocks(first, max(first, last)) {
		terms = append(terms, func(m *flow.Match) {
			m.Add(id, flow.Value{Lo: uint64(b.port)}, flow.Value{Lo: uint64(b.mask)})
		})
	}
	return terms
}

// portBlock is the ports that equal port in the bits of mask.
type portBlock struct{ port, mask uint16 }

// portBlocks covers a range with the fewest blocks: from each port the biggest
// block that begins there and stays inside.
func portBlocks(first, last uint16) (blocks []portBlock) {
	for from := int(first); from <= int(last); {
		size := 1 << min(bits.TrailingZeros16(uint16(from)), 16)
		for from+size-1 > int(last) {
			size /= 2
		}
		blocks = append(blocks, portBlock{uint16(from), uint16(-size)})
		from += size
	}
	return blocks
}

// message matches the type and code of ICMP, or the group of IGMP.
func (l L4Match) message() term {
	return func(m *flow.Match) {
		typ, code := flow.ICMPType, flow.ICMPCode
		if l.Proto == protoICMPv6 {
			typ, code = flow.ICMPv6Type, flow.ICMPv6Code
		}
		if l.ICMPType != nil {
			m.AddExact(typ, flow.Value{Lo: uint64(*l.ICMPType)})
		}
		if l.ICMPCode != nil {
			m.AddExact(code, flow.Value{Lo: uint64(*l.ICMPCode)})
		}
		if l.Proto == protoIGMP && l.GroupAddress.IsValid() {
			dst(l.GroupAddress)(m)
		}
	}
}
