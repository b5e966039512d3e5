package flow

import (
	"fmt"
	"strconv"

	"github.com/antrail/antrail/packet"
)

// Actions in OpenFlow 1.0's spelling, which ovs-ofctl prints by default and Antrea's tests read.
// Examples: resubmit(,4) for goto_table:4, load:0x3->NXM_NX_REG0[0..3] for
// set_field:0x3/0xf->reg0, and the actions of OpenFlow 1.0 for the headers that it knows. Like
// Open vSwitch, it leaves out a meter, which has no spelling there. It also leaves out push_vlan,
// because mod_vlan_vid of that version adds the header.

// Version is the OpenFlow version of a text's spelling.
type Version uint8

// The versions.
const (
	OpenFlow15 Version = iota
	OpenFlow10
)

// VersionNames are the versions as ovs-ofctl's -O names them.
var VersionNames = []string{"OpenFlow15", "OpenFlow10"}

// VersionNamed is the version with a name. "" is OpenFlow 1.5.
func VersionNamed(name string) (Version, error) {
	switch name {
	case "", VersionNames[OpenFlow15]:
		return OpenFlow15, nil
	case VersionNames[OpenFlow10]:
		return OpenFlow10, nil
	}
	return 0, fmt.Errorf("%.40q is no version that entries are printed in; there are %s and %s", name, VersionNames[OpenFlow15], VersionNames[OpenFlow10])
}

// spelledIn10 are the actions that have a spelling in OpenFlow 1.0.
func spelledIn10(actions []Action) (some []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case MeterAction, PushVLAN:
			continue
		case SetField:
			if a.Mask.IsZero() {
				continue
			}
		}
		some = append(some, a)
	}
	return some
}

// appendAction10 writes an action whose spelling differs. It returns false for others.
func appendAction10(b []byte, a Action, how Format) ([]byte, bool) {
	switch a := a.(type) {
	case GotoTable:
		return appendResubmit(b, Resubmit{InPort: PortInPort, Table: a.Table}, how.Names), true
	case PopVLAN:
		return append(b, "strip_vlan"...), true
	case SetField:
		return appendSet10(b, a.Field, a.Value, a.Mask), true
	case Load:
		return appendSet10(b, a.Dst.Field, a.Value.Shl(int(a.Dst.Ofs)).And(a.Dst.Mask()), a.Dst.Mask()), true
	}
	return b, false
}

// mods are the actions of OpenFlow 1.0 that set a whole field.
var mods = map[FieldID]string{
	EthSrc: "mod_dl_src:", EthDst: "mod_dl_dst:", IPSrc: "mod_nw_src:", IPDst: "mod_nw_dst:", IPTOS: "mod_nw_tos:",
	TCPSrc: "mod_tp_src:", TCPDst: "mod_tp_dst:", UDPSrc: "mod_tp_src:", UDPDst: "mod_tp_dst:", VlanVID: "mod_vlan_vid:", VlanPCP: "mod_vlan_pcp:",
}

// appendSet10 writes the action that sets the bits of mask in a field.
func appendSet10(b []byte, id FieldID, v, mask Value) []byte {
	f := &fields[id]
	if IsTunMetadata(id) {
		return appendSetField(b, SetField{id, v, mask}, Format{})
	}
	if mask != Ones(f.Bits) {
		return appendLoads(b, f, v, mask)
	}
	switch {
	case mods[id] != "":
		return appendExact(append(b, mods[id]...), f, v, nil)
	case id == IPDSCP:
		return strconv.AppendUint(append(b, mods[IPTOS]...), v.Lo<<2, 10)
	case id == VlanTCI && v.Lo&packet.VLANPresent == 0:
		return append(b, "strip_vlan"...)
	case id == VlanTCI:
		b = strconv.AppendUint(append(b, mods[VlanVID]...), v.Lo&0xfff, 10)
		return strconv.AppendUint(append(append(b, ','), mods[VlanPCP]...), v.Lo>>13, 10)
	}
	return appendLoads(b, f, v, mask)
}

// mostLoaded is the largest number of bits of a load (nx-match's load has 64 bits of immediate).
const mostLoaded = 64

// appendLoads writes a load for each run of bits in the mask, the lowest first.
func appendLoads(b []byte, f *Field, v, mask Value) []byte {
	first, width := true, f.Bits
	if f.ID == InPort {
		width = 16 // in OpenFlow 1.0
	}
	for ofs := 0; ofs < width; {
		if mask.Shr(ofs).Lo&1 == 0 {
			ofs++
			continue
		}
		n := 1
		for n < mostLoaded && ofs+n < width && mask.Shr(ofs+n).Lo&1 != 0 {
			n++
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendLoadItself(b, Load{Subfield{f.ID, uint8(ofs), uint8(n)}, v.Shr(ofs)})
		ofs += n
	}
	return b
}
