package bench

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The packets of the measurement of conntrack: UDP over IPv4 from client i to
// one server, made in Go for antrail, and by the kernel for Open vSwitch.

// tuples is which clients packets come from, one packet after the other: from
// first on in turn, or, when of is not 0, of so many in a scattered order.
type tuples struct{ first, of uint32 }

const (
	clientNet   = 10 << 24 // 10.0.0.0
	serverAddr  = 192<<24 | 168<<16 | 1
	serverPort  = 53
	portBits    = 15 // of a client's number, above firstClient
	firstClient = 1024
	scatter     = 0x9e3779b1 // odd, near the golden ratio
	datagramLen = 60 - packet.EthernetLen - packet.IPv4Len
)

// client is the number of the i-th packet's client.
func (t tuples) client(i uint32) uint32 {
	if t.of == 0 {
		return t.first + i
	}
	return uint32(uint64(i*scatter) * uint64(t.of) >> 32)
}

// ctFrame is a frame whose client can be set.
type ctFrame []byte

// newCTFrame is a frame of client 0. It has no UDP checksum, which IPv4 allows.
func newCTFrame() ctFrame {
	b := make([]byte, packet.EthernetLen+packet.IPv4Len+datagramLen)
	packet.Ethernet(b).SetType(packet.EtherTypeIPv4)
	ip := ctFrame(b).ip()
	ip.Init()
	ip.SetTotalLen(uint16(len(ip)))
	ip.SetTTL(64)
	ip.SetProto(packet.ProtoUDP)
	binary.BigEndian.PutUint32(ip.DstBytes(), serverAddr)
	u := ctFrame(b).udp()
	u.SetDstPort(serverPort)
	u.SetLength(datagramLen)
	ctFrame(b).aim(0)
	return b
}

func (f ctFrame) ip() packet.IPv4 { return packet.IPv4(f[packet.EthernetLen:]) }

func (f ctFrame) udp() packet.UDP { return packet.UDP(f.ip()[packet.IPv4Len:]) }

// aim makes the frame one of a client.
func (f ctFrame) aim(client uint32) {
	ip := f.ip()
	binary.BigEndian.PutUint32(ip.SrcBytes(), clientNet+client>>portBits)
	ip.UpdateChecksum()
	f.udp().SetSrcPort(uint16(firstClient + client&(1<<portBits-1)))
}

// turn exchanges the frame's ends.
func (f ctFrame) turn() {
	ip, u := f.ip(), f.udp()
	for i, b := range ip.SrcBytes() {
		ip.SrcBytes()[i], ip.DstBytes()[i] = ip.DstBytes()[i], b
	}
	port := u.SrcPort()
	u.SetSrcPort(u.DstPort())
	u.SetDstPort(port)
}

// program is aim and client for the kernel: an XDP program that makes each
// frame one of the next client's and sends it out of one of two links in turn.
// Packets are counted in the first element of counter.
func (t tuples) program(links [2]int, counter *ebpf.Map) (*ebpf.Program, error) {
	const (
		ipAt   = packet.EthernetLen
		sumAt  = ipAt + 10
		srcAt  = ipAt + 12
		portAt = ipAt + packet.IPv4Len
		end    = portAt + 8
	)
	empty := newCTFrame()
	ip := empty.ip()
	clear(ip.SrcBytes())
	ip.UpdateChecksum()
	rest := int32(^binary.BigEndian.Uint16(empty[sumAt:])) // the sum of all but the source
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "antrail_clients", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: append(t.clientInstructions(links, counter), asm.Instructions{
			asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), // data
			asm.LoadMem(asm.R2, asm.R6, 4, asm.Word), // data_end
			asm.Mov.Reg(asm.R3, asm.R7),
			asm.Add.Imm(asm.R3, end),
			asm.JGT.Reg(asm.R3, asm.R2, "drop"),
			// The source address, and from it the checksum.
			asm.Mov.Reg(asm.R1, asm.R8),
			asm.RSh.Imm(asm.R1, portBits),
			asm.Add.Imm(asm.R1, clientNet),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, 16),
			asm.Mov.Reg(asm.R3, asm.R1),
			asm.And.Imm(asm.R3, 0xffff),
			asm.Add.Reg(asm.R2, asm.R3),
			asm.Add.Imm(asm.R2, rest),
			asm.Mov.Reg(asm.R3, asm.R2),
			asm.RSh.Imm(asm.R3, 16),
			asm.And.Imm(asm.R2, 0xffff),
			asm.Add.Reg(asm.R2, asm.R3),
			asm.Mov.Reg(asm.R3, asm.R2),
			asm.RSh.Imm(asm.R3, 16),
			asm.Add.Reg(asm.R2, asm.R3),
			asm.Xor.Imm(asm.R2, 0xffff),
			asm.HostTo(asm.BE, asm.R2, asm.Half),
			asm.StoreMem(asm.R7, sumAt, asm.R2, asm.Half),
			asm.HostTo(asm.BE, asm.R1, asm.Word),
			asm.StoreMem(asm.R7, srcAt, asm.R1, asm.Word),
			// The source port.
			asm.And.Imm(asm.R8, 1<<portBits-1),
			asm.Add.Imm(asm.R8, firstClient),
			asm.HostTo(asm.BE, asm.R8, asm.Half),
			asm.StoreMem(asm.R7, portAt, asm.R8, asm.Half),
			asm.Mov.Reg(asm.R1, asm.R9),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), // XDP_DROP
			asm.Return(),
		}...),
	})
}

// clientInstructions count the packet and leave its client in R8 and its link in
// R9; the context goes to R6.
func (t tuples) clientInstructions(links [2]int, counter *ebpf.Map) asm.Instructions {
	count := append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, pause()...)
	count = append(count,
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, counter.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R9, asm.R8),
		asm.And.Imm(asm.R9, 1),
		asm.Mul.Imm(asm.R9, int32(links[1]-links[0])),
		asm.Add.Imm(asm.R9, int32(links[0])))
	if t.of == 0 {
		return append(count,
			asm.LoadImm(asm.R1, int64(t.first), asm.DWord),
			asm.Add.Reg(asm.R8, asm.R1))
	}
	return append(count,
		asm.LoadImm(asm.R1, scatter, asm.DWord),
		asm.Mul.Reg(asm.R8, asm.R1),
		asm.LSh.Imm(asm.R8, 32),
		asm.RSh.Imm(asm.R8, 32),
		asm.LoadImm(asm.R1, int64(t.of), asm.DWord),
		asm.Mul.Reg(asm.R8, asm.R1),
		asm.RSh.Imm(asm.R8, 32))
}

// The generator's pace, which one polling thread of Open vSwitch keeps up with:
// nanoseconds for a packet, and how often the clock is read at most.
const (
	packetTime  = 1800
	packetReads = 200
)

// pause waits in the program: to wait between runs of it takes far longer.
func pause() asm.Instructions {
	return asm.Instructions{
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Add.Imm(asm.R7, packetTime),
		asm.Mov.Imm(asm.R9, packetReads),
		asm.FnKtimeGetNs.Call().WithSymbol("wait"),
		asm.JGE.Reg(asm.R0, asm.R7, "go"),
		asm.Sub.Imm(asm.R9, 1),
		asm.JNE.Imm(asm.R9, 0, "wait"),
		asm.Mov.Imm(asm.R9, 0).WithSymbol("go"),
	}
}
