package dataplane

import (
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// NORMAL is the MAC learning switch.
//
//  1. It learns the source address with the port of entry, and looks the destination up (package
//     l2). It floods unknown and group addresses. Antrea sends ARP this way.
//  2. If port security gives an address to a port (security.go), the address is known from the
//     start. No other port learns it, whatever security that port has.
//  3. A port's security gives its VLANs, and which of its frames have a tag (l2/portvlans.go). A
//     frame stays in its VLAN.
//  4. A tag with VLAN 0 and priority 0 is not sent, as in Open vSwitch
//     (other-config:priority-tags=never).
//  5. Actions after NORMAL see the frame as it was before.

const (
	groupAddress = 1 << 40        // the group bit of a MAC address
	reservedMAC  = 0x0180c2000000 // 01:80:c2:00:00:00 to :0f (IEEE 802.1D, table 7-10)
)

// vlanTag is the outermost tag of a frame; tci is 0 for none.
type vlanTag struct{ tpid, tci uint16 }

// tag is the frame's tag.
func (k *walk) tag() vlanTag {
	tci := uint16(flow.FieldByID(flow.VlanTCI).Get(&k.key).Lo)
	if tci&packet.VLANPresent == 0 { // an entry may have written vlan_vid
		return vlanTag{}
	}
	return vlanTag{packet.Ethernet(k.frame.Bytes()).Type(), tci}
}

// retag replaces the frame's tag. A walk's frame has at most one tag.
func (k *walk) retag(to vlanTag) {
	now := k.tag()
	if now == to {
		return
	}
	if now.tci != 0 {
		k.changeVLAN(func() bool { return packet.PopVLAN(k.frame) })
	}
	if to.tci != 0 {
		k.changeVLAN(func() bool { return packet.PushVLAN(k.frame, to.tpid, to.tci) })
	}
}

// vidBits are the bits of a tag's TCI that hold its VLAN.
const vidBits = 0xfff

// normal runs the NORMAL action.
func (k *walk) normal() {
	was := k.tag()
	vlan, ok := k.w.sw.ports.Load().guard(k.key.InPort()).VLANOf(was.tci & vidBits)
	if !ok {
		k.drop(telemetry.DropVLANTag)
		return
	}
	on := was
	if was.tci == 0 {
		on = vlanTag{packet.EtherTypeVLAN, packet.VLANPresent}
	}
	if on.tci = on.tci&^vidBits | vlan; on.tci == packet.VLANPresent { // VLAN and priority are 0
		on = vlanTag{}
	}
	k.bridge(on)
	k.retag(was)
}

// bridge learns a frame's source, and sends the frame to its destination. The frame has the tag
// trunk on ports that tag its VLAN.
func (k *walk) bridge(trunk vlanTag) {
	get := func(id flow.FieldID) uint64 { return flow.FieldByID(id).Get(&k.key).Lo }
	src, dst, vlan := get(flow.EthSrc), get(flow.EthDst), trunk.tci&vidBits
	if dst&^0xf == reservedMAC {
		k.drop(telemetry.DropReservedMAC)
		return
	}
	k.noteOnce()
	set := k.w.sw.ports.Load()
	if !k.dry() && src&groupAddress == 0 {
		k.learnSource(set, l2.MACKey{MAC: src, VLAN: vlan})
	}
	takes := func(no uint32) bool {
		g := set.guard(no)
		if !g.InVLAN(vlan) {
			return false
		}
		if g.TagsVLAN(vlan) {
			k.retag(trunk)
		} else {
			k.retag(vlanTag{})
		}
		return true
	}
	if dst&groupAddress == 0 {
		if no, known := k.station(set, src, l2.MACKey{MAC: dst, VLAN: vlan}); known && takes(no) {
			k.output(no)
			return
		}
	}
	k.flood(func(p *switchPort) bool { return floods(p) && takes(p.no) })
}

// station is the port of a destination, if it is known. Port security comes before learned
// addresses.
func (k *walk) station(set *portSet, src uint64, dst l2.MACKey) (no uint32, known bool) {
	if dst.MAC == src { // just learned; a trace does not learn, so it ends here too
		return k.key.InPort(), true
	}
	if no, known = set.owners[dst.MAC]; known {
		return no, true
	}
	return k.w.sw.fdb.Port(dst, k.w.now)
}

// learnSource learns a frame's source at its port, unless it is configured on another.
func (k *walk) learnSource(set *portSet, src l2.MACKey) {
	t, no := &k.w.sw.fdb, k.key.InPort()
	share := &t.Stray
	if p := set.port(no); p != nil {
		share = &p.macs
	}
	if set.foreign(src.MAC, no) {
		share.Foreign.Add(1)
		return
	}
	t.Learn(src, no, share, k.w.now)
}
