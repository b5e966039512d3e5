package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf/asm"
)

// The filter on a port's packet socket decides, once for each packet, whether the packet uses an
// offload entry. It reads the key, looks it up, checks and counts. If an entry matches, the
// filter leaves the entry's index for the program at tc ingress. The kernel runs that program
// next, for the same packet on the same processor. For every other packet the filter leaves no
// index, and the socket gets the packet.

// filterCode is the filter's instructions. link is the offset of the interface's number in struct
// __sk_buff.
func filterCode(m *maps, link int16) asm.Instructions {
	c := &code{}
	c.take(m, link)
	c.leaveWord()
	c.keep()
	return c.Instructions
}

// take finds the offload entry of a packet without outer headers, checks the packet, and counts
// it. From here on R8 is the offload entry.
func (c *code) take(m *maps, link int16) {
	c.add(asm.Mov.Reg(ctx, asm.R1))
	c.line(m.control.FD(), m.lines, "keep")
	c.enter(m)
	c.add(asm.LoadMem(asm.R7, ctx, skbLen, asm.Word), asm.StoreImm(asm.RFP, keyAt+keyOuter, 0, asm.Word))
	c.readKey(link)
	c.lookUp(m)
	c.checkLen()
	c.checkChecksums()
	c.checkConn(m)
	c.countTaken()
}

// keep leaves the packet to the switch. For a socket's filter, keepAll is the whole packet; at tc
// it is TCX_NEXT.
func (c *code) keep() {
	c.at("miss")
	c.endRun()
	c.at("keep")
	c.add(asm.Mov.Imm(asm.R0, keepAll), asm.Return())
}

// enter makes the count of runs odd, with a new value, and is a barrier. Everything read from
// here on is newer than that (Kernel.Settle). While no offload entry is valid, the socket gets
// the packet at once.
func (c *code) enter(m *maps) {
	c.add(
		asm.StoreImm(mem, ofTaken, 0, asm.Word),
		asm.LoadMapValue(asm.R2, m.control.FD(), 0),
		asm.LoadMem(asm.R2, asm.R2, ofCurrent, asm.Word),
		asm.JEq.Imm(asm.R2, 0, "keep"),
		asm.LoadMem(asm.R1, mem, ofRun, asm.Word),
		asm.Add.Imm32(asm.R1, 2),
		asm.Or.Imm32(asm.R1, 1),
		exchange(mem, asm.R1, ofRun),
	)
}

// readKey writes the key to the stack, except the outer source. R7 is the length of the whole
// frame. From here on R8 is the end of the IP packet.
func (c *code) readKey(link int16) {
	c.add(
		asm.LoadMem(asm.R1, ctx, skbVLAN, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "miss"),
		asm.LoadMem(asm.R1, ctx, link, asm.Word),
		asm.StoreMem(asm.RFP, keyAt, asm.R1, asm.Word),
	)
	c.add(asm.Mov.Imm(asm.R1, 0))
	for at := keyAddrs; at < -keyAt; at += 8 {
		c.add(asm.StoreMem(asm.RFP, int16(keyAt+at), asm.R1, asm.DWord))
	}
	c.add(asm.StoreMem(asm.RFP, payloadAt, asm.R1, asm.DWord))
	c.loadFrom(c.inner+0, keyAt+keyFrame, 16, "miss")
	c.loadFrom(c.inner+16, headerAt, 10, "miss")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyFrame+12, asm.Half),
		asm.LoadMem(asm.R2, asm.RFP, keyAt+keyFrame+l3, asm.Byte),
		asm.JEq.Imm(asm.R1, network(packet.EtherTypeIPv4), "ipv4"),
		asm.JNE.Imm(asm.R1, network(packet.EtherTypeIPv6), "miss"),
	)
	c.readIPv6()
	c.readIPv4()
	c.at("l4")
	c.readL4()
}

// readIPv6 accepts a packet without extension headers, because they would be in the place of the
// protocol.
func (c *code) readIPv6() {
	c.add(
		asm.RSh.Imm(asm.R2, 4),
		asm.JNE.Imm(asm.R2, 6, "miss"),
		asm.LoadMem(asm.R1, asm.RFP, headerAt, asm.Half),
		asm.StoreMem(asm.RFP, keyAt+keyLabel, asm.R1, asm.Half),
		asm.LoadMem(asm.R8, asm.RFP, headerAt+2, asm.Half), // payload length
		asm.HostTo(asm.BE, asm.R8, asm.Half),
		asm.Add.Imm(asm.R8, c.inner+l4Of6),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+4, asm.Byte), // next header
		asm.StoreMem(asm.RFP, keyAt+keyProto, asm.R1, asm.Byte),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+5, asm.Byte), // hop limit
		asm.StoreMem(asm.RFP, keyAt+keyTTL, asm.R1, asm.Byte),
		asm.Mov.Imm(asm.R1, c.inner+l4Of6),
		asm.StoreMem(asm.RFP, l4At, asm.R1, asm.DWord),
	)
	c.loadFrom(c.inner+22, keyAt+keyAddrs, 32, "miss")
	c.add(asm.Ja.Label("l4"))
}

// readIPv4 accepts a whole packet without options.
func (c *code) readIPv4() {
	c.at("ipv4")
	c.add(
		asm.JNE.Imm(asm.R2, 0x45, "miss"),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+4, asm.Half), // MF and the offset
		asm.And.Imm(asm.R1, network(0x3fff)),
		asm.JNE.Imm(asm.R1, 0, "miss"),
		asm.LoadMem(asm.R8, asm.RFP, headerAt, asm.Half), // total length
		asm.HostTo(asm.BE, asm.R8, asm.Half),
		asm.Add.Imm(asm.R8, c.inner+l3),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+6, asm.Byte),
		asm.StoreMem(asm.RFP, keyAt+keyTTL, asm.R1, asm.Byte),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+7, asm.Byte),
		asm.StoreMem(asm.RFP, keyAt+keyProto, asm.R1, asm.Byte),
		asm.Mov.Imm(asm.R1, c.inner+l4Of4),
		asm.StoreMem(asm.RFP, l4At, asm.R1, asm.DWord),
	)
	c.loadFrom(c.inner+26, keyAt+keyAddrs, 8, "miss")
	c.checkIPv4Sum()
}

// checkIPv4Sum leaves a packet with a wrong header checksum to the switch. It uses R1 and R2.
func (c *code) checkIPv4Sum() {
	c.add(asm.LoadMem(asm.R1, asm.RFP, keyAt+keyFrame+l3, asm.Half))
	for at := int16(0); at < 10; at += 2 {
		c.add(asm.LoadMem(asm.R2, asm.RFP, headerAt+at, asm.Half), asm.Add.Reg(asm.R1, asm.R2))
	}
	for at := int16(0); at < 8; at += 2 {
		c.add(asm.LoadMem(asm.R2, asm.RFP, keyAt+keyAddrs+at, asm.Half), asm.Add.Reg(asm.R1, asm.R2))
	}
	c.add(
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 16),
		asm.And.Imm(asm.R1, 0xffff),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JNE.Imm(asm.R1, 0xffff, "miss"),
	)
}

// readL4 reads the transport header, which must lie in the packet, and the packet in the frame. A
// packet from a tunnel ends with its inner packet, because a message of many datagrams has others
// after that. From here on R8 is the length that the MTU of the output interface limits: the
// frame's, or that of its segments.
func (c *code) readL4() {
	ends := asm.JGT
	if c.inner != 0 {
		ends = asm.JNE
	}
	c.add(
		ends.Reg(asm.R8, asm.R7, "miss"),
		asm.StoreImm(asm.RFP, keyAt+keyFlags, 0, asm.Half),
		asm.LoadMem(asm.R2, asm.RFP, l4At, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyProto, asm.Byte),
		asm.JEq.Imm(asm.R1, packet.ProtoTCP, "tcp"),
		asm.JNE.Imm(asm.R1, packet.ProtoUDP, "miss"),
	)
	c.readUDP()
	c.readTCP()
	c.at("ports")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, segmentAt, asm.Word),
		asm.StoreMem(asm.RFP, keyAt+keyL4, asm.R1, asm.Word),
	)
}

// readUDP accepts a datagram that fills its packet and is not to be segmented. The length and
// gso_size alone do not say how to segment.
func (c *code) readUDP() {
	c.loadBytes(segmentAt, packet.UDPLen, "miss")
	c.add(
		asm.LoadMem(asm.R1, ctx, skbGSOSize, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "miss"),
		asm.LoadMem(asm.R1, asm.RFP, segmentAt+4, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.LoadMem(asm.R2, asm.RFP, l4At, asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.JNE.Reg(asm.R1, asm.R8, "miss"),
		asm.Mov.Reg(asm.R8, asm.R7),
		asm.Ja.Label("ports"),
	)
}

// readTCP accepts a segment with ACK, possibly with PSH, ECE and CWR, and no other flag.
func (c *code) readTCP() {
	const allowed = packet.TCPAck | packet.TCPPsh | packet.TCPEce | packet.TCPCwr
	c.at("tcp")
	c.loadBytes(segmentAt, tcpBare, "miss")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, segmentAt+12, asm.Byte), // data offset, reserved bits
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, 0x0f),
		asm.JNE.Imm(asm.R2, 0, "miss"),
		asm.RSh.Imm(asm.R1, 2),
		asm.JLT.Imm(asm.R1, tcpBare, "miss"),
		asm.LoadMem(asm.R2, asm.RFP, l4At, asm.DWord),
		asm.Add.Reg(asm.R2, asm.R1), // where the payload begins
		asm.JGT.Reg(asm.R2, asm.R8, "miss"),
		asm.Mov.Reg(asm.R3, asm.R8),
		asm.Sub.Reg(asm.R3, asm.R2),
		asm.StoreMem(asm.RFP, payloadAt, asm.R3, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, segmentAt+13, asm.Byte),
		asm.StoreMem(asm.RFP, keyAt+keyFlags, asm.R1, asm.Byte),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.And.Imm(asm.R3, ^allowed&0xff),
		asm.JNE.Imm(asm.R3, 0, "miss"),
		asm.And.Imm(asm.R1, packet.TCPAck),
		asm.JEq.Imm(asm.R1, 0, "miss"),
		asm.Mov.Reg(asm.R8, asm.R7),
		asm.LoadMem(asm.R1, ctx, skbGSOSize, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "ports"),
		asm.JLT.Imm(asm.R1, minGSO, "miss"),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.Mov.Reg(asm.R8, asm.R1),
	)
}

// lookUp finds the offload entry, in R8 from here on, and spills its index. The previous R8 goes
// to l4At.
func (c *code) lookUp(m *maps) {
	c.add(
		asm.StoreMem(asm.RFP, l4At, asm.R8, asm.DWord),
		asm.LoadMapPtr(asm.R1, m.keys.FD()),
	)
	c.stack(asm.R2, keyAt)
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "miss"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.RFP, placeAt, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.offloads.FD()),
	)
	c.stack(asm.R2, placeAt)
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "miss"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.LoadMem(asm.R1, asm.R8, ofGeneration, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "miss"),
		asm.LoadMapValue(asm.R3, m.control.FD(), 0),
		asm.LoadMem(asm.R2, asm.R3, ofCurrent, asm.Word),
		asm.LoadMem(asm.R4, asm.R8, ofParts, asm.Word),
		asm.And.Imm(asm.R4, int32(ports.OffloadLearned)),
		asm.JEq.Imm(asm.R4, 0, "generation"),
		asm.LoadMem(asm.R2, asm.R3, ofLearnings, asm.Word),
	)
	c.at("generation")
	c.add(asm.JNE.Reg(asm.R1, asm.R2, "miss"))
}

// checkLen leaves packets to the switch that are too long for the output interface, or for an
// outer IP packet.
func (c *code) checkLen() {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, l4At, asm.DWord),
		asm.LoadMem(asm.R2, asm.R8, ofMaxLen, asm.Word),
		asm.Add.Imm(asm.R2, c.inner),
		asm.JGT.Reg(asm.R1, asm.R2, "miss"),
		asm.LoadMem(asm.R1, asm.R8, ofParts, asm.Word),
		asm.And.Imm(asm.R1, int32(ports.OffloadWrap)),
		asm.JEq.Imm(asm.R1, 0, "fits"),
		asm.JGT.Imm(asm.R7, longest, "miss"),
	)
	c.at("fits")
}

// checkChecksums leaves a packet to the switch if it must be rewritten and its checksum has one
// of the two values that mean zero. There a difference of differences may end at the other value,
// and over UDP one of them means no checksum.
func (c *code) checkChecksums() {
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofParts, asm.Word),
		asm.And.Imm(asm.R1, rewrites),
		asm.JEq.Imm(asm.R1, 0, "plain"),
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyProto, asm.Byte),
		asm.LoadMem(asm.R2, asm.RFP, segmentAt+16, asm.Half), // of TCP
		asm.JEq.Imm(asm.R1, packet.ProtoTCP, "sum"),
		asm.LoadMem(asm.R2, asm.RFP, segmentAt+6, asm.Half),
	)
	c.at("sum")
	c.add(
		asm.JEq.Imm(asm.R2, 0, "miss"),
		asm.JEq.Imm(asm.R2, 0xffff, "miss"),
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyFrame+12, asm.Half),
		asm.JNE.Imm(asm.R1, network(packet.EtherTypeIPv4), "plain"),
		asm.LoadMem(asm.R1, asm.RFP, headerAt+8, asm.Half),
		asm.JEq.Imm(asm.R1, 0xffff, "miss"),
	)
	c.at("plain")
}

// checkConn finds the connection, which must be live. A TCP segment must be in its windows, and
// advances them.
func (c *code) checkConn(m *maps) {
	c.add(
		asm.StoreMem(asm.RFP, takenAt, asm.R8, asm.DWord),
		asm.LoadMapPtr(asm.R1, m.conns.FD()),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.Add.Imm(asm.R2, ofConn),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "miss"),
		asm.LoadMem(asm.R1, asm.R0, ofLive, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "miss"),
		asm.LoadMem(asm.R1, asm.RFP, keyAt+keyProto, asm.Byte),
		asm.JNE.Imm(asm.R1, packet.ProtoTCP, "take"),
	)
	c.windows()
}

// countTaken counts the packet. From here on R8 is the offload entry.
func (c *code) countTaken() {
	c.at("take")
	c.add(
		asm.LoadMem(asm.R8, asm.RFP, takenAt, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.Sub.Imm(asm.R7, c.inner),
		asm.AddAtomic.Mem(asm.R8, asm.R1, asm.DWord, ofPackets),
		asm.AddAtomic.Mem(asm.R8, asm.R7, asm.DWord, ofBytes),
	)
}

// leaveWord leaves the entry's index for the ingress program. The socket does not get the packet.
func (c *code) leaveWord() {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, keyAt, asm.Word),
		asm.StoreMem(mem, ofInterface, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, placeAt, asm.Word),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(mem, ofTaken, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	)
}
