package switchd

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// Ports that a controller gives with their descriptors, because the switch may not open
// them: a packet socket, a tap, or the receiving sockets of a tunnel. The controller
// attaches the programs of a packet socket and takes them off; the switch never touches
// them.

// GivePort implements door.Opening. A port of the same number is closed first.
func (s *PortSet) GivePort(p *door.PortSpec, fds []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &Inheritance{}
	defer from.Close() // of what no port has
	given, err := givenAs(p)
	from.Add(given.driver, given.link, append([]int{}, fds...)) // never nil: a port without descriptors is an error
	if err == nil && s.specs[p.No] != nil {
		err = s.remove(p.No)
	}
	if err != nil {
		return fmt.Errorf("port %d %q: %w", p.No, p.Name, err)
	}
	by := *s.open
	by.From, by.Attached = from, true
	as := *p
	switch given.driver {
	case DriverUnderlay:
		t := *p.Tunnel
		t.Driver, as.Tunnel = DriverKernel, &t
	default:
		as.Driver = given.driver
	}
	return s.enter(p, func() (ports.Port, error) { return s.openPort(&by, &as) })
}

// givenAs says which descriptors a port is made of. The error says why no switch takes
// the port of another process.
func givenAs(p *door.PortSpec) (inherited, error) {
	switch {
	case p.Driver == DriverTap && p.Tap != nil:
		return inherited{DriverTap, p.Link}, nil
	case p.Driver == door.DriverTunnel && p.Tunnel != nil:
		return inherited{DriverUnderlay, p.Name}, CanGive(p)
	}
	return inherited{DriverAFPacket, p.Link}, CanGive(p)
}

// CanGive says why a port cannot be given with its descriptors; nil if it can.
func CanGive(p *door.PortSpec) error {
	switch t := p.Tunnel; {
	case p.Driver == DriverAFXDP:
		return errors.New("driver afxdp: a confined switch takes packet sockets only; use auto or afpacket")
	case p.Driver != door.DriverTunnel || t == nil:
		return nil
	case t.Driver == DriverAFXDP:
		return errors.New("tunnel.driver afxdp: a confined switch takes no card on AF_XDP; use kernel or auto")
	case t.Kind == tunnel.KindGRE.String():
		return errors.New("tunnel.kind gre: it sends by a raw socket, which a confined switch may not open; use geneve or vxlan")
	}
	return nil
}
