package tunnel

import "github.com/antrail/antrail/packet"

// Kind is a kind of tunnel. All Nodes of a cluster have the same.
type Kind uint8

// The kinds. antrail sends a header of HeaderLen bytes in each of them.
const (
	KindGeneve Kind = iota // RFC 8926; Antrea's default
	KindVXLAN              // RFC 7348
	KindGRE                // RFC 2784, with the key of RFC 2890

	numKinds
)

// HeaderLen is the length of the header that is sent: Geneve without options,
// VXLAN, or GRE with a key.
const HeaderLen = 8

// UDP ports (RFC 8926, section 6; RFC 7348, section 8.1).
const (
	GenevePort = 6081
	VXLANPort  = 4789
)

// ProtoGRE is GRE's IP protocol number (RFC 2784, section 2.2).
const ProtoGRE = 47

// kinds is how the kinds differ.
var kinds = [numKinds]struct {
	name   string
	port   uint16 // 0: not over UDP
	init   func(h []byte, vni uint32)
	unwrap func(b []byte) (inner []byte, vni uint32, why Reason)
}{
	KindGeneve: {"geneve", GenevePort, func(h []byte, vni uint32) { Geneve(h).Init(vni) }, unwrapGeneve},
	KindVXLAN:  {"vxlan", VXLANPort, func(h []byte, vni uint32) { VXLAN(h).Init(vni) }, unwrapVXLAN},
	KindGRE:    {"gre", 0, func(h []byte, vni uint32) { GRE(h).Init(vni) }, unwrapGRE},
}

// KindNamed is the kind with a name as in a configuration: geneve, vxlan or gre.
func KindNamed(name string) (Kind, bool) {
	for k := range numKinds {
		if kinds[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// String is the name as in a configuration.
func (k Kind) String() string { return kinds[k].name }

// Port is the UDP port at which tunnels of this kind are received; 0 for GRE,
// which has none.
func (k Kind) Port() uint16 { return kinds[k].port }

// Proto is the IP protocol number of outer packets: UDP's or GRE's.
func (k Kind) Proto() uint8 {
	if k.Port() == 0 {
		return ProtoGRE
	}
	return packet.ProtoUDP
}

// Overhead is how many bytes of the underlay's MTU a tunnel over IPv4 or IPv6 uses. It covers the
// outer IP and UDP headers, the tunnel's header, and the inner Ethernet header.
func (k Kind) Overhead(v6 bool) int {
	n := packet.IPv4Len
	if v6 {
		n = packet.IPv6Len
	}
	if k.Port() != 0 {
		n += packet.UDPLen
	}
	return n + HeaderLen + packet.EthernetLen
}

// Init writes the header of an Ethernet frame in virtual network vni, HeaderLen
// bytes. Geneve and VXLAN send the lowest 24 bits of vni, GRE all 32.
func (k Kind) Init(h []byte, vni uint32) { kinds[k].init(h, vni) }

// UnwrapOptions is Unwrap for a receiver that reads the options itself. o is the options, a part
// of the datagram's bytes. It is empty if the only option is the id of a live-traced walk. All
// options fit, and a critical option does not drop the packet.
func (k Kind) UnwrapOptions(datagram []byte) (inner []byte, vni uint32, o Options, why Reason) {
	if k != KindGeneve {
		inner, vni, why = k.Unwrap(datagram)
		return inner, vni, nil, why
	}
	h := Geneve(datagram)
	if why = h.check(); why == None {
		why = h.Options().fit()
	}
	if why == None && !packet.Ethernet(h.Payload()).Valid() {
		why = Inner
	}
	if why != None {
		return nil, 0, nil, why
	}
	if o = h.Options(); len(o) == TraceLen && k.Trace(datagram) != 0 {
		o = nil
	}
	return h.Payload(), h.VNI(), o, None
}

// Unwrap is the inner Ethernet frame of a datagram that begins with a header of this kind, and
// its virtual network. inner is a part of the datagram's bytes. If why is not None, the caller
// must drop the datagram.
func (k Kind) Unwrap(datagram []byte) (inner []byte, vni uint32, why Reason) {
	if inner, vni, why = kinds[k].unwrap(datagram); why != None {
		return nil, 0, why
	}
	if !packet.Ethernet(inner).Valid() {
		return nil, 0, Inner
	}
	return inner, vni, None
}
