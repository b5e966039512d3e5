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
	to     ports.TunnelEnd // of a tunnel; the zero value if entries choose it
	aside  bool            // FLOOD and NORMAL leave it out
	config atomic.Pointer[telemetry.PortConfig]

	carries ports.Carries // offload state of a frame that it accepts
	kernel  offload.Port  // … and as the kernel's forwarding sees it
	account account       // counters of packets that entered by it or left by it
	guard   atomic.Pointer[l2.Guard]
	macs    l2.MACShare
	sent    atomic.Uint64 // frames until the last PortsMark
	backlog backlog       // of the worker that receives from it

	share sched.Share // which worker receives from it, and its part of that worker's time; changed under Switch.mu
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
	case flow.PortFlood:
		k.flood(floods)
	case flow.PortAll:
		k.flood(everyPort)
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
	if c := p.config.Load(); c.Down || c.NoForward {
		k.drop(telemetry.DropNoForward)
		return
	}
	if p.tunnel && !k.setTunnel(&p.to) {
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

// releaseHeld sends a copy of the frame, as it is, to the output that was held back. It is called
// before the frame changes or is sent once more.
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
			k.trace.markOutputDropped(k.held.port)
		}
		k.dropCopy()
	}
	k.held = held{}
}

// setTunnel fills the frame's outer header from the key. It returns false if no entry has set a
// destination and the port has none of its own.
func (k *walk) setTunnel(only *ports.TunnelEnd) bool {
	get := func(id flow.FieldID) flow.Value { return flow.FieldByID(id).Get(&k.key) }
	dst, id := addrOf(get(flow.TunDst), get(flow.TunIPv6Dst)), get(flow.TunID).Lo
	if only.Address.IsValid() {
		dst = only.Address
		if !only.AnyNetwork {
			id = uint64(only.Network)
		}
	}
	if !dst.IsValid() {
		return false
	}
	k.releaseHeld()
	k.frame.Tunnel = packet.Tunnel{ // Src is the port's own address
		Dst: dst,
		ID:  id,
		TOS: uint8(get(flow.TunTOS).Lo),
		TTL: uint8(get(flow.TunTTL).Lo),
		// An id of a live trace goes beside the packet.
		Trace: k.trace.carried(),
		// VXLAN and GRE have no place for options, and their ports leave them out.
		Options: k.key.TunnelOptions(k.prog.Names.TunnelOptions()),
	}
	return true
}

// addrOf is the address in an IPv4 field, or otherwise in its IPv6 twin. It is the zero Addr if
// both are zero.
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

// flood sends to every port that takes the frame, except the port of entry and ports that floods
// leave out. A tunnel port takes part only if it has one destination or an entry has set tun_dst.
func (k *walk) flood(takes func(*switchPort) bool) {
	k.noteOnce()
	in := k.key.InPort()
	before := k.sent
	tunnelled := !flow.FieldByID(flow.TunDst).Get(&k.key).IsZero() || !flow.FieldByID(flow.TunIPv6Dst).Get(&k.key).IsZero()
	for _, p := range k.w.sw.ports.Load().list {
		if c := p.config.Load(); p.no != in && !p.aside && !c.Down && !c.NoForward && (!p.tunnel || tunnelled || p.to.Address.IsValid()) && takes(p) {
			k.outputTo(p.no)
		}
	}
	if k.sent == before {
		k.drop(telemetry.DropNoSuchPort)
	}
}

// everyPort takes every frame.
func everyPort(*switchPort) bool { return true }

// floods says whether FLOOD and NORMAL flood to a port.
func floods(p *switchPort) bool { return !p.config.Load().NoFlood }
