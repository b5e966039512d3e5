package l2

import (
	"fmt"
	"slices"
)

// The VLANs of a port for NORMAL, and which of its frames have a tag. Modes have the meaning of
// the columns tag, trunks and vlan_mode in Open vSwitch's table Port. A nil Guard stands for a
// trunk of all VLANs. VLAN 0 is for frames that belong to no VLAN.

// VLANMode says which VLANs a port has, and which frames it tags.
type VLANMode string

// The modes. A port without a mode is an access port if it has a VLAN of its own, and otherwise a
// trunk.
const (
	// VLANAccess is a port of its own VLAN only. Its frames have no tag.
	VLANAccess VLANMode = "access"
	// VLANTrunk is a port whose frames have tags.
	VLANTrunk VLANMode = "trunk"
	// VLANNativeTagged is a trunk that puts frames without a tag into its own VLAN.
	VLANNativeTagged VLANMode = "native-tagged"
	// VLANNativeUntagged also sends the frames of its own VLAN without a tag.
	VLANNativeUntagged VLANMode = "native-untagged"
)

// vlanModes are all modes.
var vlanModes = []VLANMode{"", VLANAccess, VLANTrunk, VLANNativeTagged, VLANNativeUntagged}

// lastVLAN is the last VLAN that frames may name: IEEE 802.1Q, table 9-2, reserves 4095.
const lastVLAN = 4094

// checkVLANs returns an error if the VLANs are invalid.
func (s *PortSecurity) checkVLANs() error {
	if s.VLAN > lastVLAN {
		return fmt.Errorf("vlan: %d is more than %d", s.VLAN, lastVLAN)
	}
	if !slices.Contains(vlanModes, s.VLANMode) {
		return fmt.Errorf("vlanMode: %.40q is none of %q", s.VLANMode, vlanModes[1:])
	}
	for _, vlan := range s.Trunks {
		if vlan > lastVLAN {
			return fmt.Errorf("trunks: %d is more than %d", vlan, lastVLAN)
		}
	}
	return nil
}

// vlans are the VLANs of a port as walks read them.
type vlans struct {
	mode  VLANMode // "" for a trunk without a mode
	own   uint16   // the VLAN of frames without a tag; a trunk ignores it
	trunk [lastVLAN/64 + 1]uint64
}

// vlansOf are the VLANs of a port; nil for a trunk of all VLANs.
func vlansOf(s *PortSecurity) *vlans {
	v := &vlans{mode: s.VLANMode, own: s.VLAN}
	switch {
	case v.mode == "" && v.own != 0:
		v.mode = VLANAccess
	case (v.mode == "" || v.mode == VLANTrunk) && len(s.Trunks) == 0:
		return nil
	}
	for i := range v.trunk {
		if len(s.Trunks) == 0 {
			v.trunk[i] = ^uint64(0)
		}
	}
	for _, vlan := range s.Trunks {
		v.trunk[vlan/64] |= 1 << (vlan % 64)
	}
	if v.native() && v.own != 0 { // no frame of its own VLAN is lost, and all untagged frames belong to it
		v.trunk[v.own/64] |= 1 << (v.own % 64)
		v.trunk[0] &^= 1
	}
	return v
}

// VLANOf is the VLAN of a frame that the port receives. vid is the VLAN in its tag, or 0. ok is
// false if the port is not in that VLAN.
func (g *Guard) VLANOf(vid uint16) (vlan uint16, ok bool) {
	switch {
	case g == nil || g.vlans == nil:
		return vid, true
	case g.vlans.mode == VLANAccess:
		return g.vlans.own, vid == 0
	case vid == 0 && g.vlans.native():
		return g.vlans.own, true
	}
	return vid, g.InVLAN(vid)
}

// InVLAN reports whether the port is in a VLAN.
func (g *Guard) InVLAN(vlan uint16) bool {
	switch {
	case g == nil || g.vlans == nil:
		return true
	case g.vlans.mode == VLANAccess:
		return vlan == g.vlans.own
	}
	return g.vlans.trunk[vlan/64]>>(vlan%64)&1 != 0
}

// TagsVLAN reports whether the port keeps the tag on frames of one of its VLANs, if they have
// one.
func (g *Guard) TagsVLAN(vlan uint16) bool {
	if g == nil || g.vlans == nil {
		return true
	}
	return g.vlans.mode != VLANAccess && (g.vlans.mode != VLANNativeUntagged || vlan != g.vlans.own)
}

// native reports whether frames without a tag belong to the port's own VLAN.
func (v *vlans) native() bool { return v.mode == VLANNativeTagged || v.mode == VLANNativeUntagged }
