package conntrack

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The packets are UDP over IPv4, from numbered clients to one server. Go makes them for antrail, the
// kernel for Open vSwitch.

// tuples says from which clients packets come. If of is 0, they come from first on in turn. Otherwise they
// come from so many clients in a scattered order.
type tuples struct{ first, of uint32 }

const (
	clientNet   = 10 << 24 // 10.0.0.0
	serverAddr  = 192<<24 | 168<<16 | 1
	serverPort  = 53
	portBits    = 15 // bits of a client's number in its port, which is above firstClient
	firstClient = 1024
	scatter     = 0x9e3779b1 // odd, near the golden ratio
	datagramLen = 60 - packet.EthernetLen - packet.IPv4Len
)

// client returns the client of the i-th packet.
func (t tuples) client(i uint32) uint32 {
	if t.of == 0 {
		return t.first + i
	}
	return uint32(uint64(i*scatter) * uint64(t.of) >> 32)
}

// clientFrame is a frame with a client that can be set.
type clientFrame []byte

// newClientFrame is a frame of client 0. It has no UDP checksum, which IPv4 allows.
func newClientFrame() clientFrame {
	b := make([]byte, packet.EthernetLen+packet.IPv4Len+datagramLen)
	packet.Ethernet(b).SetType(packet.EtherTypeIPv4)
	ip := clientFrame(b).ip()
	ip.Init()
	ip.SetTotalLen(uint16(len(ip)))
	ip.SetTTL(64)
	ip.SetProto(packet.ProtoUDP)
	binary.BigEndian.PutUint32(ip.DstBytes(), serverAddr)
	u := clientFrame(b).udp()
	u.SetDstPort(serverPort)
	u.SetLength(datagramLen)
	clientFrame(b).setClient(0)
	return b
}

// ip is the IPv4 header with what follows.
func (f clientFrame) ip() packet.IPv4 { return packet.IPv4(f[packet.EthernetLen:]) }

// udp is the UDP header with what follows.
func (f clientFrame) udp() packet.UDP { return packet.UDP(f.ip()[packet.IPv4Len:]) }

// setClient makes the frame one from a client.
func (f clientFrame) setClient(client uint32) {
	ip := f.ip()
	binary.BigEndian.PutUint32(ip.SrcBytes(), clientNet+client>>portBits)
	ip.UpdateChecksum()
	f.udp().SetSrcPort(uint16(firstClient + client&(1<<portBits-1)))
}

// swapEnds exchanges source and destination.
func (f clientFrame) swapEnds() {
	ip, u := f.ip(), f.udp()
	for i, b := range ip.SrcBytes() {
		ip.SrcBytes()[i], ip.DstBytes()[i] = ip.DstBytes()[i], b
	}
	port := u.SrcPort()
	u.SetSrcPort(u.DstPort())
	u.SetDstPort(port)
}

// program loads an XDP program that gives each frame the next client, as client and setClient do. It
// sends the frame out of one of two links in turn. It counts packets in the first element of counter.
func (t tuples) program(links [2]int, counter *ebpf.Map) (*ebpf.Program, error) {
	const (
		ipAt   = packet.EthernetLen
		sumAt  = ipAt + 10
		srcAt  = ipAt + 12
		portAt = ipAt + packet.IPv4Len
		end    = portAt + 8
	)
	empty := newClientFrame()
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

// clientInstructions count the packet. They leave the client in R8, the link in R9 and the context in R6.
func (t tuples) clientInstructions(links [2]int, counter *ebpf.Map) asm.Instructions {
	count := append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, waitInstructions()...)
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

// The generator's pace. One polling thread of Open vSwitch keeps up with it.
const (
	packetTime  = 1800 // ns for a packet
	packetReads = 200  // most readings of the clock for a packet
)

// waitInstructions wait in the program. To wait between its runs would take far longer.
func waitInstructions() asm.Instructions {
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
