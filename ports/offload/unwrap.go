package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The program at tc ingress of the underlay's link takes packets out of a tunnel and sends
// them to pods. There is one for tunnels over UDP, and one for GRE. All that it does not take goes on to the Node's stack, and by that to the
// sockets of the tunnel's port:
//
//  1. The outer packet is for this link, whole, and of GRE or to a tunnel's UDP port. It
//     has no options, and the right lengths and IPv4 checksum. It has no UDP checksum, as
//     the ingress program sends it, because only the socket could verify that.
//  2. The outer source is part of the key, and with the inner frame's headers it is all
//     that leads to an offload entry. So a Node cannot send in the name of another.
//  3. The outer destination, the port and the tunnel's header must be those of the offload
//     entry, byte for byte. So options, flags and other networks go to the socket.
//  4. The inner packet is checked as the filter checks a pod's.

// The two programs.
const (
	unwrapUDP = iota
	unwrapGRE
	numUnwraps
)

// unwrapOf is the one for a kind of tunnel.
func unwrapOf(kind tunnel.Kind) int {
	if kind == tunnel.KindGRE {
		return unwrapGRE
	}
	return unwrapUDP
}

// loadUnwraps loads both.
func loadUnwraps(name string, to *[numUnwraps]*ebpf.Program, m *maps, link int16) (err error) {
	for i, n := range [numUnwraps]int32{unwrapUDP: outerUDP, unwrapGRE: outerGRE} {
		if to[i], err = load(name, ebpf.SchedCLS, unwrapCode(m, link, n)); err != nil {
			return err
		}
	}
	return nil
}

// unwrapCode is the instructions of one; link as in filterCode. inner is where the inner
// frame begins.
func unwrapCode(m *maps, link int16, inner int32) asm.Instructions {
	c := &code{inner: inner}
	c.add(asm.Mov.Reg(ctx, asm.R1))
	c.readOuter()
	c.line(m.control.FD(), m.lines, "keep")
	c.enter(m)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, outerAt+l3+12, asm.Word),
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

// readOuter copies the outer headers to the stack and checks them. R7 is the length of
// all from here on.
func (c *code) readOuter() {
	c.add(
		asm.LoadMem(asm.R7, ctx, skbLen, asm.Word),
		asm.LoadMem(asm.R1, ctx, skbPktType, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "keep"), // PACKET_HOST
	)
	c.loadFrom(0, outerAt, c.inner, "keep")
	c.add(
		outerHalf(asm.R1, 12),
		asm.JNE.Imm(asm.R1, network(packet.EtherTypeIPv4), "keep"),
		asm.LoadMem(asm.R1, asm.RFP, outerAt+l3, asm.Byte),
		asm.JNE.Imm(asm.R1, 0x45, "keep"),
		asm.LoadMem(asm.R3, asm.RFP, outerAt+l3+9, asm.Byte),
		outerHalf(asm.R1, l3+6), // MF and the offset
		asm.And.Imm(asm.R1, network(0x3fff)),
		asm.JNE.Imm(asm.R1, 0, "keep"),
		outerHalf(asm.R1, l3+2),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Add.Imm(asm.R2, l3),
		asm.JNE.Reg(asm.R2, asm.R7, "keep"),
	)
	if c.inner == outerGRE {
		c.add(asm.JNE.Imm(asm.R3, tunnel.ProtoGRE, "keep"))
	} else {
		c.checkUDP()
	}
	c.checkOuterSum()
}

// outerHalf loads two bytes of the outer headers.
func outerHalf(r asm.Register, at int16) asm.Instruction {
	return asm.LoadMem(r, asm.RFP, outerAt+at, asm.Half)
}

// checkUDP checks the outer UDP header. R1 is the length of the IP packet, R3 its protocol.
func (c *code) checkUDP() {
	c.add(
		asm.JNE.Imm(asm.R3, packet.ProtoUDP, "keep"),
		outerHalf(asm.R2, outerL4+4),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.Add.Imm(asm.R2, packet.IPv4Len),
		asm.JNE.Reg(asm.R2, asm.R1, "keep"),
		outerHalf(asm.R1, outerL4+6),
		asm.JNE.Imm(asm.R1, 0, "keep"),
		outerHalf(asm.R1, outerL4+2),
		asm.JEq.Imm(asm.R1, network(tunnel.GenevePort), "port"),
		asm.JNE.Imm(asm.R1, network(tunnel.VXLANPort), "keep"),
	)
	c.at("port")
}

// checkOuterSum leaves a packet whose outer IPv4 checksum is wrong to the Node's stack.
func (c *code) checkOuterSum() {
	c.add(asm.Mov.Imm(asm.R1, 0))
	for at := int16(l3); at < outerL4; at += 2 {
		c.add(outerHalf(asm.R2, at), asm.Add.Reg(asm.R1, asm.R2))
	}
	c.add(
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 16),
		asm.And.Imm(asm.R1, 0xffff),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JNE.Imm(asm.R1, 0xffff, "keep"),
	)
}

// checkOuter compares the outer headers with what the offload entry in R8 wants.
func (c *code) checkOuter() {
	same := func(at, want int16, size asm.Size) {
		c.add(
			asm.LoadMem(asm.R1, asm.RFP, outerAt+at, size),
			asm.LoadMem(asm.R2, asm.R8, ofHop+want, size),
			asm.JNE.Reg(asm.R1, asm.R2, "miss"),
		)
	}
	same(l3+16, 0, asm.Word)
	if c.inner == outerUDP {
		same(outerL4+2, 4, asm.Half)
	} else {
		c.add(asm.LoadMem(asm.R2, asm.R8, ofHop+4, asm.Half), asm.JNE.Imm(asm.R2, 0, "miss"))
	}
	same(int16(c.inner)-tunnel.HeaderLen, 8, asm.Word)
	same(int16(c.inner)-tunnel.HeaderLen/2, 12, asm.Word)
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofParts, asm.Word),
		asm.And.Imm(asm.R1, int32(ports.OffloadUnwrap)),
		asm.JEq.Imm(asm.R1, 0, "miss"),
	)
}

// unwrap takes the outer headers off, and changes the rest by the parts in R7.
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
	// What is left of the outer Ethernet header gets the inner one's type.
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
