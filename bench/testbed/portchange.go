package testbed

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// PortChange says which ports of a frame depend on the number of its connection.
type PortChange int

const (
	// ChangeNone leaves the ports as they are.
	ChangeNone PortChange = iota
	// ChangePorts changes both ports.
	ChangePorts
	// ChangeSwapped changes both ports as ChangePorts does and exchanges them, for answers.
	ChangeSwapped
	// ChangeSource changes the source port alone.
	ChangeSource
)

const (
	// renewBits is how many bits of its number each of both ports has.
	renewBits = 15
	// lowestPort is both ports of connection 0.
	lowestPort = 1 << renewBits
	// lowestSource is the source port of connection 0 with ChangeSource.
	lowestSource = 1024
	// sources is how many source ports there are with ChangeSource.
	sources = 64_000
)

// Connections is how many connections have ports of their own.
func (c PortChange) Connections() int {
	if c == ChangeSource {
		return sources
	}
	return 1 << (2 * renewBits)
}

// Apply gives a UDP frame the ports of the n-th connection.
func (c PortChange) Apply(frame []byte, n uint32) {
	switch c {
	case ChangePorts:
		putPorts(frame, n)
	case ChangeSwapped:
		putPorts(frame, n)
		src, dst := binary.BigEndian.Uint16(frame[udpAt:]), binary.BigEndian.Uint16(frame[udpAt+2:])
		binary.BigEndian.PutUint16(frame[udpAt:], dst)
		binary.BigEndian.PutUint16(frame[udpAt+2:], src)
	case ChangeSource:
		binary.BigEndian.PutUint16(frame[udpAt:], uint16(lowestSource+n%sources))
	}
}

// putPorts gives a frame both ports of the n-th connection.
func putPorts(frame []byte, n uint32) {
	const mask = 1<<renewBits - 1
	binary.BigEndian.PutUint32(frame[udpAt:], (lowestPort+n>>renewBits&mask)<<16|(lowestPort+n&mask))
}

// Instructions do the same as Apply in a generator's program. The connection's number is in R8,
// the context in R6.
func (c PortChange) Instructions() asm.Instructions {
	switch c {
	case ChangePorts:
		return portInstructions()
	case ChangeSwapped:
		return portInstructions(
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, 16),
			asm.LSh.Imm(asm.R1, 16),
			asm.Or.Reg(asm.R1, asm.R2))
	case ChangeSource:
		return append(portsAt(),
			asm.Mov.Reg(asm.R1, asm.R8),
			asm.Mod.Imm(asm.R1, sources),
			asm.Add.Imm(asm.R1, lowestSource),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.R7, udpAt, asm.R1, asm.Half))
	}
	return nil
}

// portsAt leaves the start of the frame in R7. A frame without ports is dropped.
func portsAt() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R2, asm.R6, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Imm(asm.R3, udpAt+4),
		asm.JGT.Reg(asm.R3, asm.R2, "drop"),
	}
}

// portInstructions do the same as putPorts in a generator's program. Before they write the ports,
// order may exchange them. They are the halves of R1.
func portInstructions(order ...asm.Instruction) asm.Instructions {
	const mask = 1<<renewBits - 1
	list := append(portsAt(),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, renewBits),
		asm.And.Imm(asm.R1, mask),
		asm.Add.Imm(asm.R1, lowestPort),
		asm.LSh.Imm(asm.R1, 16),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.And.Imm(asm.R2, mask),
		asm.Add.Imm(asm.R2, lowestPort),
		asm.Or.Reg(asm.R1, asm.R2))
	return append(append(list, order...),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.StoreMem(asm.R7, udpAt, asm.R1, asm.Word))
}

// NumberInstructions returns instructions that turn the frame's number in R8 into its connection's number. It
// counts from first on. If of is not 0, the frames are of so many connections in turn.
func NumberInstructions(first, of uint32) (list asm.Instructions) {
	if of > 0 {
		list = append(list, asm.Mod.Imm(asm.R8, int32(of)))
	}
	return append(list, asm.Add.Imm(asm.R8, int32(first)))
}
