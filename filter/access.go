package filter

import (
	"golang.org/x/net/bpf"
)

// Bytes of a header compared with a number: "tcp[tcpflags] & (tcp-syn|tcp-ack) != 0", "ip[8] =
// 1", "udp[0:2] > 1023".

// constants are the names of numbers in such a comparison (pcap-filter(7)).
var constants = map[string]uint32{
	"tcpflags": 13, "icmptype": 0, "icmpcode": 1, "icmp6type": 0, "icmp6code": 1,
	"tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8, "tcp-ack": 16, "tcp-urg": 32, "tcp-ece": 64, "tcp-cwr": 128,
	"icmp-echoreply": 0, "icmp-unreach": 3, "icmp-redirect": 5, "icmp-echo": 8, "icmp-timxceed": 11,
	"icmp6-destinationrunreach": 1, "icmp6-packettoobig": 2, "icmp6-echo": 128, "icmp6-echoreply": 129,
	"icmp6-neighborsolicit": 135, "icmp6-neighboradvert": 136,
}

// comparisons are BPF's jump tests, by operator.
var comparisons = map[string]bpf.JumpTest{
	"=": bpf.JumpEqual, "==": bpf.JumpEqual, "!=": bpf.JumpNotEqual, "<": bpf.JumpLessThan, ">": bpf.JumpGreaterThan,
	"<=": bpf.JumpLessOrEqual, ">=": bpf.JumpGreaterOrEqual,
}

// access is a comparison of some bytes of a header.
func (p *parser) access() node {
	only, load := p.header(p.peek())
	isTCP := p.next() == "tcp"
	p.expect("[")
	off, size := p.constant(0xffff), uint32(1)
	if p.accept(":") != "" {
		if size = p.constant(4); size != 1 && size != 2 && size != 4 {
			p.refuse("expected 1, 2 or 4 bytes")
		}
	}
	p.expect("]")
	if !isTCP || off != 13 || size != 1 {
		p.deep = true // only a connection's TCP flags are among the fields that offloaded packets are distinguished by
	}
	all := load(off, int(size))
	if p.accept("&") != "" {
		all = append(all, masked(p.mask()))
	}
	op := p.peek()
	cond, ok := comparisons[op]
	if !ok {
		p.refuse("expected &, =, !=, <, >, <= or >=, not %q", op)
	}
	p.next()
	return and(only, test(cond, p.constant(1<<32-1), all...))
}

// header returns the test for frames with a header, and how to load a field of it.
func (p *parser) header(name string) (only node, load func(off uint32, size int) []bpf.Instruction) {
	at := func(start uint32) func(uint32, int) []bpf.Instruction {
		return func(off uint32, size int) []bpf.Instruction { return []bpf.Instruction{fieldAt(start+off, size)} }
	}
	switch name {
	case "ether":
		return always, at(0)
	case "ip", "ip6", "arp", "rarp":
		return etherType(etherTypes[name], p.shift), at(14 + p.shift)
	case "icmp6":
		return and(etherType(typeIPv6, p.shift), test(bpf.JumpEqual, protoICMPv6, byteAt(20+p.shift))), at(54 + p.shift)
	case "tcp", "udp", "sctp", "icmp", "igmp": // of IPv4, as in libpcap
		length := bpf.LoadMemShift{Off: 14 + p.shift}
		first := test(bpf.JumpBitsNotSet, 0x1fff, halfAt(20+p.shift))
		return and(ipProto(protocols[name], p.shift), first), func(off uint32, size int) []bpf.Instruction {
			return []bpf.Instruction{length, bpf.LoadIndirect{Off: 14 + p.shift + off, Size: size}}
		}
	}
	p.refuse("there are no bytes of %q; want ether, ip, ip6, arp, rarp, tcp, udp, sctp, icmp, icmp6 and igmp", name)
	return nil, nil
}

// mask is a number, or some in parentheses with | between them.
func (p *parser) mask() uint32 {
	if p.accept("(") == "" {
		return p.constant(1<<32 - 1)
	}
	m := p.constant(1<<32 - 1)
	for p.accept("|") != "" {
		m |= p.constant(1<<32 - 1)
	}
	p.expect(")")
	return m
}

// constant is a number, or the name of one.
func (p *parser) constant(most uint32) uint32 {
	if n, ok := constants[p.peek()]; ok && n <= most {
		p.next()
		return n
	}
	return p.number(most)
}
