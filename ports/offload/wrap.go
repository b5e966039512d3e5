package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Outer headers of tunnels. The programs of pods' ports and of the gateway add them to packets to
// another Node. The programs describe the headers to the kernel, so a card that can handle
// segments and checksums gets them undone.
//
// An outer UDP header has no checksum, also over IPv6 (RFC 6935). The kernel would have to
// compute one for each segment, and a program cannot request that.
//
// The kernel keeps the neighbours. bpf_redirect_neigh reads the MAC address of the next hop
// there, and makes the kernel resolve an unknown one.

const (
	roomMAC   = 1 // BPF_ADJ_ROOM_MAC
	alreadyIs = -int32(unix.EALREADY)
	neighLen  = 20                                                         // of struct bpf_redir_neigh
	longest   = 0xffff - packet.IPv4Len - packet.UDPLen - tunnel.HeaderLen // of frames that fit into an outer packet of any kind

	// Flags of bpf_skb_adjust_room.
	keepGSO = 1 << 0 // BPF_F_ADJ_ROOM_FIXED_GSO
	wrapIP4 = 1 << 1 // BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
	wrapIP6 = 1 << 2 // BPF_F_ADJ_ROOM_ENCAP_L3_IPV6
	wrapGRE = 1 << 3 // BPF_F_ADJ_ROOM_ENCAP_L4_GRE
	wrapUDP = 1 << 4 // BPF_F_ADJ_ROOM_ENCAP_L4_UDP
	wrapEth = 1 << 6 // BPF_F_ADJ_ROOM_ENCAP_L2_ETH
	showIP4 = 1 << 7 // BPF_F_ADJ_ROOM_DECAP_L3_IPV4
	showIP6 = 1 << 8 // BPF_F_ADJ_ROOM_DECAP_L3_IPV6
	wrapLen = packet.EthernetLen << 56

	// rewrites is the parts that change bytes of the frame.
	rewrites = int32(ports.OffloadEth | ports.OffloadIP | ports.OffloadAddrs | ports.OffloadPorts)
)

// wrapFlags describes the headers to the kernel.
func (o outer) wrapFlags() (flags int64) {
	flags = keepGSO | wrapIP4 | wrapUDP | wrapEth | wrapLen
	if o.over6 {
		flags ^= wrapIP4 | wrapIP6
	}
	if o.gre {
		flags ^= wrapUDP | wrapGRE
	}
	return flags
}

// wrap adds the outer headers of the offload entry in R8 to the frame, and sends it to the next
// hop. R7 is the parts.
func (c *code) wrap() {
	c.add(asm.Mov.Reg(asm.R1, asm.R7), asm.And.Imm(asm.R1, kindParts))
	for i, o := range outers[1:] {
		c.add(asm.JEq.Imm(asm.R1, o.parts(), wrapLabels[1+i]))
	}
	for i, o := range outers {
		c.at(wrapLabels[i])
		c.wrapBy(o, wrapLabels[i]+" grown")
	}
	c.at("wrapped")
	c.endRun()
	c.add(
		asm.LoadMem(asm.R1, asm.R8, ofOut, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.Add.Imm(asm.R2, ofHop),
		asm.Mov.Imm(asm.R3, neighLen),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRedirectNeigh.Call(),
		asm.Return(),
	)
}

// wrapLabels are the labels of the code for each of outers.
var wrapLabels = [numOuters]string{"udp4", "gre4", "udp6", "gre6"}

// wrapBy adds outer headers of one kind.
func (c *code) wrapBy(o outer, grown string) {
	c.grow(o.len(), o.wrapFlags())
	c.add(
		asm.JEq.Imm(asm.R0, 0, grown),
		// A pod may send packets that its own kernel has encapsulated. For these the kernel can
		// finish only the pod's own checksums. Such a packet is whole, so nothing needs to be
		// segmented.
		asm.JNE.Imm(asm.R0, alreadyIs, "lost"),
		asm.LoadMem(asm.R1, ctx, skbGSOSize, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "lost"),
	)
	c.grow(o.len(), keepGSO)
	c.add(asm.JNE.Imm(asm.R0, 0, "lost"))
	c.at(grown)
	c.fillOuter(o)
	c.add(asm.Mov.Reg(asm.R1, ctx), asm.Mov.Imm(asm.R2, 0))
	c.stack(asm.R3, wrapAt-l3)
	c.add(
		asm.Mov.Imm(asm.R4, l3+o.len()),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
		asm.Ja.Label("wrapped"),
	)
}

// grow makes room after the Ethernet header. The result is in R0.
func (c *code) grow(n int32, flags int64) {
	c.add(
		asm.Mov.Reg(asm.R1, ctx),
		asm.Mov.Imm(asm.R2, n),
		asm.Mov.Imm(asm.R3, roomMAC),
		asm.LoadImm(asm.R4, flags, asm.DWord),
		asm.FnSkbAdjustRoom.Call(),
	)
}

// fillOuter copies the outer headers to the stack, after an Ethernet header without addresses,
// and completes the lengths and the IPv4 checksum.
func (c *code) fillOuter(o outer) {
	c.add(
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, wrapAt-16, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, wrapAt-8, asm.R1, asm.DWord),
		asm.StoreImm(asm.RFP, wrapAt-2, int64(o.etherType()), asm.Half),
	)
	for at := int16(0); int32(at) < o.len(); at += 8 {
		c.add(asm.LoadMem(asm.R1, asm.R8, ofOuter+at, asm.DWord), asm.StoreMem(asm.RFP, wrapAt+at, asm.R1, asm.DWord))
	}
	c.add(asm.LoadMem(asm.R1, ctx, skbLen, asm.Word), asm.Sub.Imm(asm.R1, l3))
	if !o.over6 {
		c.fillIPv4()
	}
	c.add(asm.Sub.Imm(asm.R1, int32(o.ipLen())), asm.HostTo(asm.BE, asm.R1, asm.Half))
	if o.over6 {
		c.add(asm.StoreMem(asm.RFP, wrapAt+4, asm.R1, asm.Half))
	}
	if !o.gre {
		c.add(asm.StoreMem(asm.RFP, wrapAt+o.ipLen()+4, asm.R1, asm.Half))
	}
}

// fillIPv4 writes the total length, which is in R1, and the checksum.
func (c *code) fillIPv4() {
	c.add(
		asm.LoadMem(asm.R2, asm.RFP, wrapAt+10, asm.Half), // the sum of the other words
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.HostTo(asm.BE, asm.R3, asm.Half),
		asm.StoreMem(asm.RFP, wrapAt+2, asm.R3, asm.Half),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.RSh.Imm(asm.R3, 16),
		asm.And.Imm(asm.R2, 0xffff),
		asm.Add.Reg(asm.R2, asm.R3), // of two words, so no second carry
		asm.Xor.Imm(asm.R2, 0xffff),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.StoreMem(asm.RFP, wrapAt+10, asm.R2, asm.Half),
	)
}
