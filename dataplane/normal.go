package dataplane

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// NORMAL is the MAC learning switch: the source address is learned with the
// port of entry, the destination looked up; an unknown or a group address is
// flooded. Antrea sends ARP this way. The addresses are in fdb.go. An address that
// port security gives to a port (security.go) is known from the start, and learned at
// no other port, whatever that port has for security itself.
//
// A tag with VLAN and priority 0 says nothing, and is not sent, as by Open vSwitch
// (other-config:priority-tags=never). Actions behind NORMAL have the tag again.

const (
	groupAddress = 1 << 40        // the group bit of a MAC address
	reservedMAC  = 0x0180c2000000 // 01:80:c2:00:00:00 to :0f (IEEE 802.1D, table 7-10)
)

// normal runs the NORMAL action.
func (k *walk) normal() {
	if flow.FieldByID(flow.VlanTCI).Get(&k.key).Lo != packet.VLANPresent {
		k.bridge()
		return
	}
	tpid := packet.Ethernet(k.frame.Bytes()).Type()
	k.changeVLAN(func() bool { return packet.PopVLAN(k.frame) })
	k.bridge()
	k.changeVLAN(func() bool { return packet.PushVLAN(k.frame, tpid, 0) })
}

// bridge learns a frame's source, and sends it to where its destination is.
func (k *walk) bridge() {
	get := func(id flow.FieldID) uint64 { return flow.FieldByID(id).Get(&k.key).Lo }
	src, dst, vlan := get(flow.EthSrc), get(flow.EthDst), uint16(0)
	if get(flow.VlanTCI)&packet.VLANPresent != 0 { // without it, an entry may have written vlan_vid
		vlan = uint16(get(flow.VlanVID))
	}
	if dst&^0xf == reservedMAC {
		k.drop(DropReservedMAC)
		return
	}
	k.w.rec.forbid()
	t, now, set := &k.w.sw.fdb, k.w.now, k.w.sw.ports.Load()
	if !k.dry() && src&groupAddress == 0 {
		k.learnSource(set, macKey{src, vlan})
	}
	if dst&groupAddress == 0 {
		if dst == src { // just learned, or, in a trace, as if it were
			k.output(k.key.InPort())
			return
		}
		if port, owned := set.owners[dst]; owned {
			k.output(port)
			return
		}
		if port, ok := t.port(macKey{dst, vlan}, now); ok {
			k.output(port)
			return
		}
	}
	k.flood()
}

// learnSource learns a frame's source at its port, unless it is configured on another.
func (k *walk) learnSource(set *portSet, src macKey) {
	t, no := &k.w.sw.fdb, k.key.InPort()
	share := &t.stray
	if p := set.port(no); p != nil {
		share = &p.macs
	}
	if set.foreign(src.mac, no) {
		share.foreign.Add(1)
		return
	}
	t.learn(src, no, share, k.w.now)
}
