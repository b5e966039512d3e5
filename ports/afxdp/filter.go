package afxdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Filter selects the packets that a port takes from its interface. These are packets of an IP
// protocol, for UDP to a port, to the addresses of SetLocal. Everything else stays with the
// kernel. That includes fragments, packets with IP options or extension headers, tagged frames,
// and joined packets longer than the interface's MTU.
type Filter struct {
	Proto uint8
	Port  uint16 // 0: any; for protocols without ports
	// Inner is the offset of an Ethernet frame in the packet, after the IP header. In generic
	// mode, a packet is taken only if its inner IP packet ends where the packet ends, because the
	// kernel may have joined several.
	Inner int

	mtu int // of the interface
}

// within is the filter for an interface with this MTU, in a mode; nil if f is nil.
func (f *Filter) within(mtu int, mode Mode) *Filter {
	if f == nil {
		return nil
	}
	own := *f
	if own.mtu = mtu; mode != Generic {
		own.Inner = 0
	}
	return &own
}

// maxLocal is the largest number of addresses for SetLocal.
const maxLocal = 1024

// newLocals is the set of a filter's addresses: IPv6, or IPv4 mapped.
func newLocals() (*ebpf.Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "antrail_local", Type: ebpf.Hash, KeySize: 16, ValueSize: 1, MaxEntries: maxLocal})
	if err != nil {
		return nil, fmt.Errorf("map of addresses: %w", err)
	}
	return m, nil
}

// Offsets of headers in an untagged frame.
const (
	atType = packet.EthernetLen - 2
	atIP   = packet.EthernetLen
	atL44  = atIP + packet.IPv4Len
	atL46  = atIP + packet.IPv6Len
)

// filtering is the program that passes unselected packets to the kernel. With the others it
// continues at "take", with the context in R1.
func (f *Filter) filtering(locals *ebpf.Map) asm.Instructions {
	all := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R8, asm.R6, 4, asm.Word), // data_end
	}
	all = append(all, shorter(atL44+packet.UDPLen)...)
	all = append(all,
		asm.LoadMem(asm.R1, asm.R7, atType, asm.Half),
		asm.JEq.Imm(asm.R1, network(packet.EtherTypeIPv4), "ipv4"),
		asm.JNE.Imm(asm.R1, network(packet.EtherTypeIPv6), "pass"),
	)
	all = append(all, shorter(atL46+packet.UDPLen)...)
	all = append(all, long(atIP+4, f.mtu-packet.IPv6Len)...) // Payload Length
	all = append(all,
		asm.LoadMem(asm.R1, asm.R7, atIP+6, asm.Byte), // Next Header
		asm.JNE.Imm(asm.R1, int32(f.Proto), "pass"),
	)
	all = append(all, f.port(atL46)...)
	all = append(all, f.alone(atL46, atIP+4, 0)...)
	for i := int16(0); i < 16; i += 4 { // the destination
		all = append(all, asm.LoadMem(asm.R1, asm.R7, atIP+24+i, asm.Word), asm.StoreMem(asm.RFP, i-16, asm.R1, asm.Word))
	}
	all = append(all, asm.Ja.Label("lookup"),
		asm.LoadMem(asm.R1, asm.R7, atIP, asm.Byte).WithSymbol("ipv4"), // version and header length
		asm.JNE.Imm(asm.R1, 0x45, "pass"),
	)
	all = append(all, long(atIP+2, f.mtu)...) // Total Length
	all = append(all,
		asm.LoadMem(asm.R1, asm.R7, atIP+6, asm.Half), // flags and fragment offset
		asm.And.Imm(asm.R1, network(packet.IPv4MoreFragments|0x1fff)),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R7, atIP+9, asm.Byte), // Protocol
		asm.JNE.Imm(asm.R1, int32(f.Proto), "pass"),
	)
	all = append(all, f.port(atL44)...)
	all = append(all, f.alone(atL44, atIP+2, packet.IPv4Len)...)
	return append(all,
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -16, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(binary.NativeEndian.Uint32([]byte{0, 0, 0xff, 0xff}))),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, atIP+16, asm.Word), // the destination
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, locals.FD()).WithSymbol("lookup"),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -16),
		asm.FnMapLookupElem.Call(),
		asm.JNE.Imm(asm.R0, 0, "take"),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("take"),
	)
}

// long passes on packets whose length, at an offset, exceeds the limit.
func long(at int16, most int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, at, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.JGT.Imm(asm.R1, int32(most), "pass"),
	}
}

// alone passes on packets without an inner IP packet, or whose inner packet ends before the outer
// one. at is the offset behind the outer IP header. length is the offset of the field that counts
// the bytes from there on, plus header bytes.
func (f *Filter) alone(at, length int16, header int32) asm.Instructions {
	if f.Inner == 0 {
		return nil
	}
	inner := at + int16(f.Inner) + packet.EthernetLen
	is6, compare := fmt.Sprintf("inner6-%d", at), fmt.Sprintf("compare-%d", at)
	all := append(shorter(int32(inner)+6),
		asm.LoadMem(asm.R1, asm.R7, inner-2, asm.Half), // EtherType
		asm.JEq.Imm(asm.R1, network(packet.EtherTypeIPv6), is6),
		asm.JNE.Imm(asm.R1, network(packet.EtherTypeIPv4), "pass"),
		asm.LoadMem(asm.R2, asm.R7, inner+2, asm.Half), // Total Length
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.Ja.Label(compare),
		asm.LoadMem(asm.R2, asm.R7, inner+4, asm.Half).WithSymbol(is6), // Payload Length
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.Add.Imm(asm.R2, packet.IPv6Len),
		asm.LoadMem(asm.R1, asm.R7, length, asm.Half).WithSymbol(compare),
	)
	return append(all,
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.Add.Imm(asm.R2, header+int32(f.Inner)+packet.EthernetLen),
		asm.JNE.Reg(asm.R1, asm.R2, "pass"),
	)
}

// shorter passes on frames shorter than n bytes.
func shorter(n int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, n),
		asm.JGT.Reg(asm.R1, asm.R8, "pass"),
	}
}

// port passes on packets to another port. at is the offset of the transport header.
func (f *Filter) port(at int16) asm.Instructions {
	if f.Port == 0 {
		return nil
	}
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, at+2, asm.Half),
		asm.JNE.Imm(asm.R1, network(f.Port), "pass"),
	}
}

// network is a 16-bit value as a two-byte load in network order reads it.
func network(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)}))
}

// SetLocal replaces the addresses of a port with a filter. An address in both sets is never
// missing.
func (p *Port) SetLocal(addrs []netip.Addr) error {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed {
		return nil
	}
	return p.program.setLocal(addrs)
}

func (p *program) setLocal(addrs []netip.Addr) error {
	if p.locals == nil {
		return errors.New("afxdp: take packets to other addresses: the port has no filter")
	}
	want := map[[16]byte]bool{}
	for _, a := range addrs {
		key := a.As16()
		want[key] = true
		if err := p.locals.Put(key, uint8(1)); err != nil {
			return fmt.Errorf("afxdp: take packets to %v: %w", a, err)
		}
	}
	var key [16]byte
	var value uint8
	var gone [][16]byte
	for all := p.locals.Iterate(); all.Next(&key, &value); {
		if !want[key] {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		if err := p.locals.Delete(key); err != nil {
			return fmt.Errorf("afxdp: take no packets to %v: %w", netip.AddrFrom16(key).Unmap(), err)
		}
	}
	return nil
}
