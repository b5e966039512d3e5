package agent

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/tap"
	"github.com/vishvananda/netlink"
)

// The drivers of a pod's port, as Port.Driver names them. auto is a packet
// socket on a veth, for it keeps the Pod's large segments whole, and AF_XDP on
// anything else, which has cards in mind.
const (
	DriverAuto     = "auto"
	DriverAFXDP    = "afxdp"
	DriverAFPacket = "afpacket"
	// DriverTap makes the link, a tap: TrafficControls and application-layer
	// policies send traffic to such ports, and whoever is to look at it finds it
	// there.
	DriverTap = "tap"
)

// KnownDriver says whether a pod's port can have this driver.
func KnownDriver(name string) bool {
	return name == DriverAuto || name == DriverAFXDP || name == DriverAFPacket
}

// openPod opens a pod's port on its link of the Node.
func (a *Agent) openPod(p Port) (ports.Port, error) {
	switch p.Driver {
	case DriverAFXDP:
		return a.openAFXDP(p.Link, "afxdp was asked for")
	case DriverAFPacket:
		return a.openAFPacket(p.Link, "afpacket was asked for")
	case DriverTap:
		return a.openTap(p)
	}
	return a.openAuto(p.Link)
}

// openAuto chooses the driver. A veth never falls back to AF_XDP, on which every
// segment of a Pod travels alone: that is asked for, or found out by nobody.
func (a *Agent) openAuto(name string) (ports.Port, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	if link.Type() == "veth" {
		return a.openAFPacket(name, "auto: on a veth a packet socket keeps large segments whole")
	}
	p, err := a.openAFXDP(name, "auto: no veth")
	if err == nil || errors.Is(err, errDeclined) {
		return p, err
	}
	p, second := a.openAFPacket(name, fmt.Sprintf("auto: AF_XDP was refused: %v", err))
	if second != nil {
		return nil, fmt.Errorf("%w; %w", err, second)
	}
	return p, nil
}

// driverTunnel is the driver of the tunnel's port, and driverCard that of one that takes
// its packets off the Node's card.
const (
	driverTunnel = "underlay"
	driverCard   = "uplink"
)

// openAFXDP opens an AF_XDP port.
func (a *Agent) openAFXDP(link, why string) (ports.Port, error) {
	o, memory, err := a.driven(link)
	if err != nil {
		return nil, err
	}
	o.Interface, o.Why = link, why
	fds := a.estate.take(DriverAFXDP, link)
	p, err := adoptOr(fds, o, memory.Adopt, memory.Open)
	switch {
	case err != nil && fds != nil:
		return nil, a.estate.decline(link, err)
	case err != nil:
		return nil, err // p would be no nil Port
	case fds != nil:
		a.estate.goesOn(p)
	}
	return p, nil
}

// openAFPacket opens a packet socket.
func (a *Agent) openAFPacket(link, why string) (ports.Port, error) {
	fds := a.estate.take(DriverAFPacket, link)
	o := afpacket.Options{Interface: link, Why: why, Shortcuts: a.offload.programs()}
	p, err := adoptOr(fds, o, afpacket.Adopt, afpacket.Open)
	if err != nil {
		return nil, err // p would be no nil Port
	}
	if fds != nil {
		a.estate.begin = append(a.estate.begin, p.Begin)
	}
	return p, nil
}

// openTap makes the tap of a port. It carries packet marks, unless nothing comes
// back from it.
func (a *Agent) openTap(p Port) (ports.Port, error) {
	o := tap.Options{Name: p.Link, MTU: a.config.Gateway.MTU, Marks: !p.oneWay, Aside: true, Owner: host.LinkAlias(a.config.Socket)}
	t, err := adoptOr(a.estate.take(DriverTap, p.Link), o, tap.Adopt, tap.Open)
	if err != nil {
		return nil, err // t would be no nil Port
	}
	return t, nil
}

// keepTaps says whether the devices that the switch has made stay when their ports are
// closed: they do when they are another agent's.
func (a *Agent) keepTaps(keep bool) {
	if a.gateway != nil {
		a.gateway.Keep(keep)
	}
	if a.pipeline == nil || a.pods == nil {
		return
	}
	for _, p := range a.pods.heritable() {
		if t, is := p.(*tap.Port); is {
			t.Keep(keep)
		}
	}
}

// sweepTaps deletes devices of an agent before that was killed, and that this one has
// not opened: it has another configuration, or ports have gone meanwhile.
func (a *Agent) sweepTaps() {
	opened := map[string]bool{a.config.Gateway.Name: true}
	for _, p := range a.pods.wanted() {
		opened[p.Link] = true
	}
	deleted, err := tap.Sweep(host.LinkAlias(a.config.Socket), func(name string) bool { return opened[name] })
	if len(deleted) > 0 {
		a.log.Info("links of an agent before that was killed are deleted", "links", deleted)
	}
	if err != nil {
		a.log.Warn("links of an agent before stay", "error", err)
	}
}
