package offload

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf/asm"
)

// Offsets for the programs. A test asserts the offsets of a ports.OffloadEntry.

// Offsets in struct __sk_buff of linux/bpf.h.
const (
	skbLen      = 0
	skbPktType  = 4
	skbMark     = 8
	skbVLAN     = 20 // vlan_present
	skbIfindex  = 40
	skbGSOSize  = 176
	tcxDrop     = 2 // TCX_DROP of enum tcx_action_base
	keepAll     = -1
	intoShift   = 8      // of ports.OffloadInto, which makes it BPF_F_INGRESS
	pseudoSum   = 1 << 4 // BPF_F_PSEUDO_HDR
	mangledZero = 1 << 5 // BPF_F_MARK_MANGLED_0
	recompute   = 1 << 0 // BPF_F_RECOMPUTE_CSUM
)

// Offsets in a ports.OffloadEntry.
const (
	ofGeneration = 0
	ofConn       = 4
	ofOut        = 8
	ofMaxLen     = 12
	ofPackets    = 16
	ofBytes      = 24
	ofParts      = 32
	ofIPSum      = 36
	ofPseudoSum  = 38
	ofPortSum    = 40
	ofDir        = 42
	ofTTL        = 43
	ofL4         = 44
	ofChecksum   = 45
	ofEth        = 48
	ofIP         = 60
	ofPorts      = 64
	ofAddrs      = 68
	ofHop        = 100
	ofOuter      = 120
	offloadSize  = 192
)

// Offsets in a ports.SharedConn.
const (
	ofLive   = 0
	ofPeers  = 8
	peerBits = 4 // a peer takes 16 bytes
	ofNext   = 0
	ofLimit  = 4
	ofWindow = 8
	ofScale  = 12
	connSize = 64
)

// The control map has one value: a cache line for everything, then one for each processor.
const (
	ofCurrent   = 0 // the valid generation
	ofLearnings = 4 // … of offload entries with OffloadLearned
	ofDropped   = 8
	lineBits    = 6
	line        = 1 << lineBits

	// of a processor's line
	ofRun       = 0 // odd while a packet is between the two programs
	ofTaken     = 4 // index of the packet's offload entry, plus 1; 0 for none
	ofInterface = 8 // interface of entry
)

// The stack of the filter.
const (
	keyAt     = -72 // ports.OffloadKey
	headerAt  = -88 // bytes 16 to 26 of the frame, the part of an IP header
	segmentAt = -112
	placeAt   = -116
	l4At      = -128 // offset of the transport header, 8 bytes
	takenAt   = -136 // pointer to the offload entry
	payloadAt = -144 // bytes of TCP payload
	outerAt   = -208 // outer headers of a packet from the underlay, after an Ethernet header
	wrapAt    = -72  // outer headers that the ingress program writes, after an Ethernet header
)

// Offsets in a ports.OffloadKey.
const (
	keyOuter = 4
	keyFrame = 8
	keyL4    = 24
	keyFlags = 28
	keyTTL   = 30
	keyProto = 31
	keyAddrs = 32
	keyLabel = 64
)

// Offsets in frames that have offload entries.
const (
	l3      = packet.EthernetLen
	l4Of4   = l3 + packet.IPv4Len
	l4Of6   = l3 + packet.IPv6Len
	farAck  = 0xffff + 1500 // conntrack.farAck: how far an acknowledgement may lie from the seen numbers
	minGSO  = 48            // packet.leastMSS: the switch checks frames with shorter segments
	tcpBare = 20
)

// network is a 16-bit number in the packet's byte order.
func network(v uint16) int32 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return int32(binary.NativeEndian.Uint16(b[:]))
}

// Registers that the programs keep across calls.
const (
	ctx = asm.R6
	mem = asm.R9 // the processor's line of the control map
)

// code collects the parts of a program.
type code struct {
	asm.Instructions
	label string // of the next instruction
	outer outer  // of a program that decapsulates
	inner int32  // offset of the frame: after outer headers, or 0
}

// add appends instructions; the first gets the pending label.
func (c *code) add(ins ...asm.Instruction) {
	if c.label != "" {
		ins[0] = ins[0].WithSymbol(c.label)
		c.label = ""
	}
	c.Instructions = append(c.Instructions, ins...)
}

// at gives the next instruction a label.
func (c *code) at(label string) {
	if c.label != "" {
		c.add(asm.Mov.Reg(asm.R0, asm.R0)) // a second label at one place
	}
	c.label = label
}

// stack makes a register point to an offset of the stack.
func (c *code) stack(r asm.Register, at int32) {
	c.add(asm.Mov.Reg(r, asm.RFP), asm.Add.Imm(r, at))
}

// loadBytes copies n bytes of the frame to an offset of the stack. If the frame lacks them, it
// jumps to a label. R2 holds the offset in the frame.
func (c *code) loadBytes(at, n int32, missing string) {
	c.add(asm.Mov.Reg(asm.R1, ctx))
	c.stack(asm.R3, at)
	c.add(asm.Mov.Imm(asm.R4, n), asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, missing))
}

// loadFrom is loadBytes from a constant offset.
func (c *code) loadFrom(from, at, n int32, missing string) {
	c.add(asm.Mov.Imm(asm.R2, from))
	c.loadBytes(at, n, missing)
}

// line makes mem point to the processor's line. If there are more processors than lines, it jumps
// to a label.
func (c *code) line(control, lines int, none string) {
	c.add(
		asm.FnGetSmpProcessorId.Call(),
		asm.JGE.Imm(asm.R0, int32(lines), none),
		asm.LSh.Imm(asm.R0, lineBits),
		asm.LoadMapValue(mem, control, line),
		asm.Add.Reg(mem, asm.R0),
	)
}

// exchange swaps a register and a word in memory, and is a barrier. The assembler omits which
// atomic operation it is (cilium/ebpf 0.22.0, Instruction.Marshal), and the kernel would then
// add.
func exchange(at, with asm.Register, offset int16) asm.Instruction {
	i := asm.Xchg.Mem(at, with, asm.Word, offset)
	i.Constant = int64(asm.Xchg >> 8)
	return i
}

// endRun makes the count of runs even again. It uses R1.
func (c *code) endRun() {
	c.add(
		asm.LoadMem(asm.R1, mem, ofRun, asm.Word),
		asm.And.Imm(asm.R1, -2),
		asm.StoreMem(mem, ofRun, asm.R1, asm.Word),
	)
}
