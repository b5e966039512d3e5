package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf/asm"
)

// The program at tc ingress of a port's interface sends the packets that the filter has selected,
// and drops all others. The socket has the others, and the Node's own stack must not get any
// (ports/afpacket).

// ingressCode is the program's instructions; link as in filterCode.
func ingressCode(m *maps, link int16) asm.Instructions {
	c := &code{}
	c.add(asm.Mov.Reg(ctx, asm.R1))
	c.line(m.control.FD(), m.lines, "drop")
	c.add(
		asm.LoadMem(asm.R1, mem, ofTaken, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "drop"),
		asm.StoreImm(mem, ofTaken, 0, asm.Word),
		asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, placeAt, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, mem, ofInterface, asm.Word),
		asm.LoadMem(asm.R2, ctx, link, asm.Word),
		asm.JNE.Reg(asm.R1, asm.R2, "lost"),
		asm.LoadMapPtr(asm.R1, m.offloads.FD()),
	)
	c.stack(asm.R2, placeAt)
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "lost"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.LoadMem(asm.R7, asm.R8, ofParts, asm.Word),
		asm.JEq.Imm(asm.R7, 0, "send"),
	)
	c.rewrite()
	c.sendOrDrop(m)
	c.at("drop")
	c.add(asm.Mov.Imm(asm.R0, tcxDrop), asm.Return())
	return c.Instructions
}

// sendOrDrop sends the changed packet, in outer headers if the parts in R7 include them. If the
// packet could not be changed, it is counted, and the code falls through.
func (c *code) sendOrDrop(m *maps) {
	c.at("send")
	c.forgetMark()
	c.unless(ports.OffloadWrap, "redirect")
	c.wrap()
	c.at("redirect")
	c.redirectOrDrop(m)
}

// forgetMark clears the packet's mark. Another program or the Node's stack may have set it, and
// packets from the switch have none.
func (c *code) forgetMark() {
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(ctx, skbMark, asm.R1, asm.Word))
}

// redirectOrDrop sends the changed packet by the interface of the offload entry, or lets it enter
// the Node's stack there. If the packet could not be changed, it is counted, and the code falls
// through.
func (c *code) redirectOrDrop(m *maps) {
	c.endRun()
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofOut, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.And.Imm(asm.R2, int32(ports.OffloadInto)),
		asm.RSh.Imm(asm.R2, intoShift),
		asm.FnRedirect.Call(),
		asm.Return(),
	)
	c.at("lost")
	c.endRun()
	c.add(
		asm.LoadMapValue(asm.R1, m.control.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, ofDropped),
	)
}

// rewrite changes the parts in R7.
func (c *code) rewrite() {
	c.unless(ports.OffloadEth, "ip")
	c.store(0, ofEth, 12)
	c.at("ip")
	c.add(asm.LoadMem(asm.R1, asm.R8, ofL4, asm.Byte), asm.JEq.Imm(asm.R1, l4Of6, "addresses6"))
	c.unless(ports.OffloadIP, "addrs4")
	c.store(l3+1, ofIP+1, 1)
	c.store(l3+8, ofTTL, 1)
	c.at("addrs4")
	c.unless(ports.OffloadAddrs, "sum4")
	c.store(l3+12, ofAddrs, 8)
	c.at("sum4")
	c.unless(ports.OffloadIP|ports.OffloadAddrs, "transport")
	c.add(asm.Mov.Imm(asm.R2, l3+10))
	c.adjust(asm.FnL3CsumReplace, ofIPSum, 0)
	c.add(asm.Ja.Label("transport"))
	c.at("addresses6")
	c.unless(ports.OffloadIP, "addrs6")
	c.storeSummed(l3, ofIP, 4)
	c.storeSummed(l3+7, ofTTL, 1)
	c.at("addrs6")
	c.unless(ports.OffloadAddrs, "transport")
	c.store(l3+8, ofAddrs, 32)
	c.at("transport")
	c.rewriteL4()
}

// rewriteL4 changes the ports, and adjusts the transport checksum by the difference. A partial
// checksum covers only the addresses; the kernel's helper handles that.
func (c *code) rewriteL4() {
	c.unless(ports.OffloadAddrs, "newPorts")
	c.checksumPlace("udpAddrs")
	c.adjust(asm.FnL4CsumReplace, ofPseudoSum, pseudoSum)
	c.add(asm.Ja.Label("newPorts"))
	c.at("udpAddrs")
	c.adjust(asm.FnL4CsumReplace, ofPseudoSum, pseudoSum|mangledZero)
	c.at("newPorts")
	c.unless(ports.OffloadPorts, "send")
	c.add(asm.LoadMem(asm.R2, asm.R8, ofL4, asm.Byte))
	c.storeAt(ofPorts, 4)
	c.checksumPlace("udpPorts")
	c.adjust(asm.FnL4CsumReplace, ofPortSum, 0)
	c.add(asm.Ja.Label("send"))
	c.at("udpPorts")
	c.adjust(asm.FnL4CsumReplace, ofPortSum, mangledZero)
}

// unless skips to a label if none of the parts changes.
func (c *code) unless(parts ports.OffloadParts, to string) {
	c.add(asm.Mov.Reg(asm.R1, asm.R7), asm.And.Imm(asm.R1, int32(parts)), asm.JEq.Imm(asm.R1, 0, to))
}

// store writes n bytes of the offload entry into the frame.
func (c *code) store(to, from, n int32) {
	c.add(asm.Mov.Imm(asm.R2, to))
	c.storeAt(from, n)
}

// storeSummed is store for bytes that no checksum in the frame compensates. So the sum over
// everything, which a card may have given, is updated too.
func (c *code) storeSummed(to, from, n int32) {
	c.add(asm.Mov.Imm(asm.R2, to))
	c.storeBy(from, n, recompute)
}

// storeAt is store to the offset in R2.
func (c *code) storeAt(from, n int32) { c.storeBy(from, n, 0) }

func (c *code) storeBy(from, n, flags int32) {
	c.add(
		asm.Mov.Reg(asm.R1, ctx),
		asm.Mov.Reg(asm.R3, asm.R8),
		asm.Add.Imm(asm.R3, from),
		asm.Mov.Imm(asm.R4, n),
		asm.Mov.Imm(asm.R5, flags),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
	)
}

// checksumPlace sets R2 to the offset of the transport checksum in the frame, and jumps to a
// label for UDP.
func (c *code) checksumPlace(udp string) {
	c.add(
		asm.LoadMem(asm.R2, asm.R8, ofL4, asm.Byte),
		asm.LoadMem(asm.R1, asm.R8, ofChecksum, asm.Byte),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.JEq.Imm(asm.R1, udpChecksum, udp),
	)
}

// udpChecksum is the offset of the checksum in a UDP header.
const udpChecksum = packet.UDPLen - 2

// adjust adds a sum of the offload entry to the checksum at the offset in R2. The helper needs
// the sum in the packet's byte order.
func (c *code) adjust(helper asm.BuiltinFunc, sum int16, flags int32) {
	c.add(
		asm.Mov.Reg(asm.R1, ctx),
		asm.Mov.Imm(asm.R3, 0),
		asm.LoadMem(asm.R4, asm.R8, sum, asm.Half),
		asm.HostTo(asm.BE, asm.R4, asm.Half),
		asm.Mov.Imm(asm.R5, flags),
		helper.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
	)
}
