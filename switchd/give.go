package switchd

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
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
	return s.enter(p, func() (ports.Port, error) { return s.adopt(&by, p, given.driver) })
}

// adopt makes a port of what an Opener was given.
func (s *PortSet) adopt(by *Opener, p *door.PortSpec, driver string) (ports.Port, error) {
	switch {
	case driver == DriverUnderlay:
		as, t := *p, *p.Tunnel
		t.Driver, as.Tunnel = DriverKernel, &t
		return s.openTunnel(by, &as)
	case p.Link == "":
		return nil, errors.New("it names no link")
	case driver == DriverTap:
		return s.openTap(by, p)
	}
	return by.afpacket(p.Link, "the controller gave the packet socket")
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

// Programs implements door.Opening.
func (s *PortSet) Programs() []int {
	if p := s.open.Offload.Programs(); p.Filter != nil {
		return []int{p.Filter.FD(), p.Ingress.FD()}
	}
	return nil
}

// programsOf are the programs of a confined switch, for the sockets that it is given. The
// caller closes them when they are attached.
func programsOf(sw *door.Client) (p afpacket.Programs, err error) {
	fds, err := sw.Programs()
	if err != nil || len(fds) == 0 {
		return p, err
	}
	if len(fds) != 2 {
		door.CloseDescriptors(fds)
		return p, fmt.Errorf("the switch gives %d programs, want a filter and an ingress program", len(fds))
	}
	if p.Filter, err = ebpf.NewProgramFromFD(fds[0]); err != nil {
		door.CloseDescriptors(fds[1:])
		return p, err
	}
	if p.Ingress, err = ebpf.NewProgramFromFD(fds[1]); err != nil {
		return afpacket.Programs{}, errors.Join(err, p.Filter.Close())
	}
	return p, nil
}

// OpenToGive opens a port for a confined switch, in the network namespace of the calling
// thread. owner is who makes taps. The port moves no packet; what comes waits in its
// descriptors. The caller gives those, and closes the port (Leave, or Withdraw if
// the switch has not taken it).
func OpenToGive(sw *door.Client, p *door.PortSpec, owner string) (ports.Heritable, error) {
	given, err := givenAs(p)
	if err != nil {
		return nil, err
	}
	switch given.driver {
	case DriverTap:
		o, err := tapOptions(p)
		if err != nil {
			return nil, err
		}
		o.Owner = owner
		return orNone(tap.Open(o))
	case DriverUnderlay:
		c, err := tunnelConfig(p)
		if err != nil {
			return nil, err
		}
		return orNone(underlay.Open(c))
	}
	programs, err := programsOf(sw)
	if err != nil {
		return nil, err
	}
	defer func() { _ = errors.Join(programs.Filter.Close(), programs.Ingress.Close()) }() // socket and link have them
	return orNone(afpacket.Open(afpacket.Options{Interface: p.Link, Shortcuts: programs}))
}

// orNone makes no port of a nil pointer.
func orNone[P ports.Heritable](p P, err error) (ports.Heritable, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Leave closes a port that a switch has taken: the device and the program stay.
func Leave(p ports.Heritable) error {
	p.Rest()
	if t, is := p.(*tap.Port); is {
		t.Keep(true)
	}
	return p.Close()
}

// Withdraw closes a port that no switch has taken, and leaves the link as it was: the
// program goes, and so does a device that was made for the port.
func Withdraw(p ports.Heritable) error {
	p.Rest()
	switch t := p.(type) {
	case *tap.Port:
		t.Keep(t.Found())
	case *afpacket.Port:
		return errors.Join(p.Close(), afpacket.CleanLink(p.Name()))
	}
	return p.Close()
}

// TakeBack removes what a port leaves that was given to a switch and that the switch has
// closed: the program of a packet socket, or an owner's tap. A link that is gone is no
// error.
func TakeBack(link, driver, owner string) error {
	switch driver {
	case DriverAFPacket:
		return afpacket.CleanLink(link)
	case DriverTap:
		_, err := tap.Sweep(owner, func(name string) bool { return name != link })
		return err
	}
	return nil
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
