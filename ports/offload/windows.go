package offload

import "github.com/cilium/ebpf/asm"

// The windows of TCP, as in conntrack (conntrack/proto/tcp.go: inWindow, advance and grant), for
// a connection that is established both ways. No call is made here, so R1 to R5 hold:
//
//	R0  the connection, then the sender's words; R8 the other side's
//	R1  sequence number, R2 acknowledgement, R3 sequence number after the segment
//
// Packets of only one direction write a word. Two of them on two processors may leave the older
// packet's value. Then a window counts as too small, or as too large by a segment, until the next
// packet.
func (c *code) windows() {
	c.sides()
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, segmentAt+4, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, segmentAt+8, asm.Word),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.LoadMem(asm.R3, asm.RFP, payloadAt, asm.DWord),
		asm.JEq.Imm(asm.R3, 0, "acknowledges"),
		asm.Add.Reg32(asm.R3, asm.R1),
	)
	c.checkSeq()
	c.at("acknowledges")
	c.checkAck()
	c.moveWindows()
}

// sides loads the words of both sides.
func (c *code) sides() {
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofDir, asm.Byte),
		asm.And.Imm(asm.R1, 1),
		asm.LSh.Imm(asm.R1, peerBits),
		asm.Add.Imm(asm.R0, ofPeers),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Add.Reg(asm.R0, asm.R1),
		asm.Xor.Imm(asm.R1, 1<<peerBits),
		asm.Add.Reg(asm.R8, asm.R1),
	)
}

// checkSeq checks that the segment is not more than a window back, and not beyond the limit.
func (c *code) checkSeq() {
	c.add(
		asm.LoadMem(asm.R4, asm.R0, ofNext, asm.Word),
		asm.LoadMem(asm.R5, asm.R8, ofWindow, asm.Word),
		asm.Sub.Reg32(asm.R4, asm.R5),
		asm.Mov.Reg(asm.R5, asm.R1),
		asm.Sub.Reg32(asm.R5, asm.R4),
		asm.JSLT.Imm32(asm.R5, 0, "miss"),
		asm.LoadMem(asm.R4, asm.R0, ofLimit, asm.Word),
		asm.Mov.Reg(asm.R5, asm.R1),
		asm.Sub.Reg32(asm.R5, asm.R4),
		asm.JSGT.Imm32(asm.R5, 0, "miss"),
		asm.Mov.Reg(asm.R5, asm.R3),
		asm.Sub.Reg32(asm.R5, asm.R4),
		asm.JSGT.Imm32(asm.R5, 0, "miss"),
	)
}

// checkAck checks that the acknowledged number is not far from those that the other side has
// sent. From here on R5 is the sender's window scale.
func (c *code) checkAck() {
	c.add(
		asm.LoadMem(asm.R5, asm.R0, ofScale, asm.Word),
		asm.And.Imm(asm.R5, 15),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.LoadMem(asm.R1, asm.R8, ofNext, asm.Word),
		asm.Sub.Reg32(asm.R4, asm.R1),
		asm.LSh.Imm(asm.R4, 32),
		asm.ArSh.Imm(asm.R4, 32),
		asm.JSGT.Imm(asm.R4, farAck, "miss"),
		asm.Neg.Imm(asm.R4, 0),
		asm.Mov.Imm(asm.R1, farAck),
		asm.LSh.Reg(asm.R1, asm.R5),
		asm.JSGT.Reg(asm.R4, asm.R1, "miss"),
	)
}

// moveWindows stores the segment's window, its end, and the other side's new limit.
func (c *code) moveWindows() {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, segmentAt+14, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.LSh.Reg(asm.R1, asm.R5),
		asm.LoadMem(asm.R4, asm.R0, ofWindow, asm.Word),
		asm.JLE.Reg(asm.R1, asm.R4, "offered"),
		asm.StoreMem(asm.R0, ofWindow, asm.R1, asm.Word),
	)
	c.at("offered")
	c.add(
		asm.JEq.Imm(asm.R3, 0, "sent"), // R3 is 0 for an empty segment, and for one that ends at 0: then the next segment moves it
		asm.LoadMem(asm.R4, asm.R0, ofNext, asm.Word),
		asm.Mov.Reg(asm.R5, asm.R3),
		asm.Sub.Reg32(asm.R5, asm.R4),
		asm.JSLE.Imm32(asm.R5, 0, "sent"),
		asm.StoreMem(asm.R0, ofNext, asm.R3, asm.Word),
	)
	c.at("sent")
	c.add(asm.JNE.Imm(asm.R1, 0, "open"), asm.Mov.Imm(asm.R1, 1))
	c.at("open")
	c.add(
		asm.Add.Reg32(asm.R1, asm.R2), // the other side's limit
		asm.LoadMem(asm.R4, asm.R8, ofLimit, asm.Word),
		asm.Mov.Reg(asm.R5, asm.R1),
		asm.Sub.Reg32(asm.R5, asm.R4),
		asm.JSLE.Imm32(asm.R5, 0, "take"),
		asm.StoreMem(asm.R8, ofLimit, asm.R1, asm.Word),
	)
}
