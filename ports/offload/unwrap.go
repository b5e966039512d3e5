package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The program at tc ingress of the underlay's link takes packets out of a tunnel and sends them
// to pods. There is one for each kind of outer headers. Other packets go on to the Node's stack,
// and so to the sockets of the tunnel's port. A packet that it takes meets these conditions:
//
//  1. The outer packet is for this link, whole, and of GRE or to a tunnel's UDP port. It has no
//     IPv4 options and no IPv6 extension headers, and the right lengths and IPv4 checksum. It has
//     no UDP checksum, as the ingress program sends it, because only the socket could verify
//     that.
//  2. The outer addresses, the port and the tunnel's header equal those of the offload entry,
//     byte for byte. The key has a part of the source. So a Node cannot send in the name of
//     another, and packets with options, flags and other networks go to the socket.
//  3. The inner packet passes the filter's checks for a pod's packet.
//
// Without a UDP checksum over IPv6, damage to the outer header on its way goes undetected. By 2 a
// damaged one leads to no offload entry, and by 3 neither does a damaged inner header. The
// receiver verifies the inner checksum (RFC 6936, section 4).

// loadUnwraps loads the programs of all kinds.
func loadUnwraps(name string, to *[numOuters]*ebpf.Program, m *maps, link int16) (err error) {
	for i, o := range outers {
		if to[i], err = load(name, ebpf.SchedCLS, unwrapCode(m, link, o)); err != nil {
			return err
		}
	}
	return nil
}

// unwrapCode is the instructions for one kind; link as in filterCode.
func unwrapCode(m *maps, link int16, o outer) asm.Instructions {
	c := &code{outer: o, inner: o.len()}
	c.add(asm.Mov.Reg(ctx, asm.R1))
	c.readOuter()
	c.line(m.control.FD(), m.lines, "keep")
	c.enter(m)
	sourceEnd := o.addrs() + (o.ipLen()-o.addrs())/2 - 4
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, outerAt+sourceEnd, asm.Word),
		asm.StoreMem(asm.RFP, keyAt+keyOuter, asm.R1, asm.Word),
	)
	c.readKey(link)
	c.lookUp(m)
	c.checkOuter()
	c.checkLen()
	c.checkChecksums()
	c.checkConn(m)
	c.countTaken()
	c.unwrap()
	c.at("send")
	c.forgetMark()
	c.redirectOrDrop(m)
	c.add(asm.Mov.Imm(asm.R0, tcxDrop), asm.Return())
	c.keep()
	return c.Instructions
}

// readOuter copies the outer headers to the stack and checks them. From here on R7 is the length
// of the whole frame.
func (c *code) readOuter() {
	c.add(
		asm.LoadMem(asm.R7, ctx, skbLen, asm.Word),
		asm.LoadMem(asm.R1, ctx, skbPktType, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "keep"), // PACKET_HOST
	)
	c.loadFrom(0, outerAt-l3, c.inner, "keep")
	c.add(outerHalf(asm.R1, -2), asm.JNE.Imm(asm.R1, c.outer.etherType(), "keep"))
	if c.outer.over6 {
		c.checkIPv6()
	} else {
		c.checkIPv4()
	}
	c.add(
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Add.Imm(asm.R2, l3+int32(c.outer.ipLen())),
		asm.JNE.Reg(asm.R2, asm.R7, "keep"),
	)
	if c.outer.gre {
		c.add(asm.JNE.Imm(asm.R3, tunnel.ProtoGRE, "keep"))
	} else {
		c.checkUDP()
	}
}

// outerHalf loads two bytes of the outer headers.
func outerHalf(r asm.Register, at int16) asm.Instruction {
	return asm.LoadMem(r, asm.RFP, outerAt+at, asm.Half)
}

// checkIPv4 checks an outer IPv4 header. From here on R1 is the length of its payload, and R3 its
// protocol.
func (c *code) checkIPv4() {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, outerAt, asm.Byte),
		asm.JNE.Imm(asm.R1, 0x45, "keep"),
		outerHalf(asm.R1, 6), // MF and the offset
		asm.And.Imm(asm.R1, network(0x3fff)),
		asm.JNE.Imm(asm.R1, 0, "keep"),
		asm.Mov.Imm(asm.R1, 0),
	)
	for at := int16(0); at < packet.IPv4Len; at += 2 {
		c.add(outerHalf(asm.R2, at), asm.Add.Reg(asm.R1, asm.R2))
	}
	c.add(
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 16),
		asm.And.Imm(asm.R1, 0xffff),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JNE.Imm(asm.R1, 0xffff, "keep"),
		outerHalf(asm.R1, 2),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.Sub.Imm(asm.R1, packet.IPv4Len),
		asm.LoadMem(asm.R3, asm.RFP, outerAt+9, asm.Byte),
	)
}

// checkIPv6 checks an outer IPv6 header; R1 and R3 as in checkIPv4.
func (c *code) checkIPv6() {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, outerAt, asm.Byte),
		asm.RSh.Imm(asm.R1, 4),
		asm.JNE.Imm(asm.R1, 6, "keep"),
		outerHalf(asm.R1, 4),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.LoadMem(asm.R3, asm.RFP, outerAt+6, asm.Byte),
	)
}

// checkUDP checks the outer UDP header. R1 is its packet's length by the IP header, R3 the
// protocol.
func (c *code) checkUDP() {
	udp := c.outer.ipLen()
	c.add(
		asm.JNE.Imm(asm.R3, packet.ProtoUDP, "keep"),
		outerHalf(asm.R2, udp+4),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.JNE.Reg(asm.R2, asm.R1, "keep"),
		outerHalf(asm.R1, udp+6),
		asm.JNE.Imm(asm.R1, 0, "keep"),
		outerHalf(asm.R1, udp+2),
		asm.JEq.Imm(asm.R1, network(tunnel.GenevePort), "port"),
		asm.JNE.Imm(asm.R1, network(tunnel.VXLANPort), "keep"),
	)
	c.at("port")
}

// checkOuter compares the outer headers with those of the offload entry in R8.
func (c *code) checkOuter() {
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofParts, asm.Word),
		asm.And.Imm(asm.R1, kindParts|int32(ports.OffloadUnwrap)),
		asm.JNE.Imm(asm.R1, c.outer.parts()|int32(ports.OffloadUnwrap), "miss"),
	)
	for at := c.outer.addrs(); at < c.outer.ipLen(); at += 4 {
		c.sameOuter(at, asm.Word)
	}
	if !c.outer.gre {
		c.sameOuter(c.outer.ipLen()+2, asm.Half)
	}
	for at := range int16(tunnel.HeaderLen / 4) {
		c.sameOuter(c.outer.head()+4*at, asm.Word)
	}
}

// sameOuter compares a word of the outer headers.
func (c *code) sameOuter(at int16, size asm.Size) {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, outerAt+at, size),
		asm.LoadMem(asm.R2, asm.R8, ofOuter+at, size),
		asm.JNE.Reg(asm.R1, asm.R2, "miss"),
	)
}

// unwrap removes the outer headers, and changes the rest by the parts in R7.
func (c *code) unwrap() {
	c.add(
		asm.Mov.Imm(asm.R4, keepGSO|showIP4),
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyFrame+12, asm.Half),
		asm.JEq.Imm(asm.R1, network(packet.EtherTypeIPv4), "shrink"),
		asm.Mov.Imm(asm.R4, keepGSO|showIP6),
	)
	c.at("shrink")
	c.add(
		asm.Mov.Reg(asm.R1, ctx),
		asm.Mov.Imm(asm.R2, -c.inner),
		asm.Mov.Imm(asm.R3, roomMAC),
		asm.FnSkbAdjustRoom.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
		asm.LoadMem(asm.R7, asm.R8, ofParts, asm.Word),
	)
	// The rest of the outer Ethernet header gets the inner one's type.
	c.add(asm.Mov.Reg(asm.R1, ctx), asm.Mov.Imm(asm.R2, 12))
	c.stack(asm.R3, keyAt+keyFrame+12)
	c.add(
		asm.Mov.Imm(asm.R4, 2),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
	)
	c.rewrite()
}
