package dataplane

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/offload"
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// switchPort is a port with its number in the pipeline.
type switchPort struct {
	no     uint32
	port   ports.Port
	tunnel bool
	aside  bool // floods leave it out

	carries ports.Carries // undone work that it passes on
	kernel  offload.Port  // … as the kernel forwards here
	account account       // of what entered by it, and left
	guard   atomic.Pointer[l2.Guard]
	macs    l2.MACShare
	backlog backlog // of the worker that receives from it

	share sched.Share // which worker receives from it, and of that worker's time; changed under Switch.mu
}

// output sends to a port number. The port of entry is left out: only IN_PORT
// sends a packet back (OpenFlow 1.3, section 4.5).
func (k *walk) output(no uint32) {
	switch no {
	case k.key.InPort():
		k.drop(telemetry.DropToInPort)
	case flow.PortInPort:
		k.outputTo(k.key.InPort())
	case flow.PortNormal:
		k.normal()
	case flow.PortFlood, flow.PortAll:
		k.flood()
	default:
		k.outputTo(no)
	}
}

// outputTo sends to a port number, whatever the port of entry.
func (k *walk) outputTo(no uint32) {
	p := k.w.sw.ports.Load().port(no)
	if p == nil {
		k.drop(telemetry.DropNoSuchPort)
		return
	}
	if p.tunnel && !k.setTunnel() {
		k.drop(telemetry.DropNoTunnelDst)
		return
	}
	k.sent++
	k.noteOutput(p)
	if k.dry() {
		return
	}
	k.releaseHeld()
	k.frame.Mark = k.key.PktMark()
	k.held = held{p, true}
}

// releaseHeld gives the output that was held back a copy of the frame as it is. The frame
// is about to change, or to be sent once more.
func (k *walk) releaseHeld() {
	if !k.held.yes {
		return
	}
	k.noteOnce()
	if f := k.w.copyFrame(k.frame); f != nil {
		k.w.queue(k.held.port, f)
	} else {
		k.sent--
		if k.trace != nil {
			k.trace.lose(k.held.port)
		}
		k.dropCopy()
	}
	k.held = held{}
}

// setTunnel fills the frame's outer header from the key; false when no entry
// has set a destination.
func (k *walk) setTunnel() bool {
	get := func(id flow.FieldID) flow.Value { return flow.FieldByID(id).Get(&k.key) }
	dst := addrOf(get(flow.TunDst), get(flow.TunIPv6Dst))
	if !dst.IsValid() {
		return false
	}
	k.releaseHeld()
	k.frame.Tunnel = packet.Tunnel{ // Src is the port's own address
		Dst: dst,
		ID:  get(flow.TunID).Lo,
		TOS: uint8(get(flow.TunTOS).Lo),
		TTL: uint8(get(flow.TunTTL).Lo),
		// An id of a live trace goes beside the packet.
		Trace: k.trace.carried(),
	}
	return true
}

// addrOf is the address that an IPv4 field, or else its IPv6 twin, holds; the
// zero Addr when both are zero.
func addrOf(v4, v6 flow.Value) netip.Addr {
	switch {
	case !v4.IsZero():
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(v4.Lo))
		return netip.AddrFrom4(b)
	case !v6.IsZero():
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], v6.Hi)
		binary.BigEndian.PutUint64(b[8:], v6.Lo)
		return netip.AddrFrom16(b)
	}
	return netip.Addr{}
}

// flood sends to every port but the port of entry and those that stand aside. A
// tunnel port takes part only when an entry has set tun_dst.
func (k *walk) flood() {
	k.noteOnce()
	in := k.key.InPort()
	before := k.sent
	tunnelled := !flow.FieldByID(flow.TunDst).Get(&k.key).IsZero() || !flow.FieldByID(flow.TunIPv6Dst).Get(&k.key).IsZero()
	for _, p := range k.w.sw.ports.Load().list {
		if p.no != in && !p.aside && (!p.tunnel || tunnelled) {
			k.outputTo(p.no)
		}
	}
	if k.sent == before {
		k.drop(telemetry.DropNoSuchPort)
	}
}

// NORMAL is the MAC learning switch. The source address is learned with the port of
// entry, and the destination is looked up. An unknown or a group address is flooded.
// Antrea sends ARP this way. The addresses are in fdb.go. An address that port security
// gives to a port (security.go) is known from the start. It is learned at no other port,
// whatever security that port has.
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
		k.drop(telemetry.DropReservedMAC)
		return
	}
	k.noteOnce()
	t, now, set := &k.w.sw.fdb, k.w.now, k.w.sw.ports.Load()
	if !k.dry() && src&groupAddress == 0 {
		k.learnSource(set, l2.MACKey{MAC: src, VLAN: vlan})
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
		if port, ok := t.Port(l2.MACKey{MAC: dst, VLAN: vlan}, now); ok {
			k.output(port)
			return
		}
	}
	k.flood()
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
