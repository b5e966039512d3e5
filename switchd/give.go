package switchd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Ports that a controller gives with their descriptors, because the switch may not open them. The
// controller attaches the programs of packet sockets and AF_XDP sockets. The switch never touches
// them.

// GivePort implements door.PortOpener. A port of the same number is closed first.
func (s *PortSet) GivePort(p *door.PortSpec, fds []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &Inheritance{}
	defer from.Close() // closes those that no port uses
	driver, link := driverAndLink(p, fds)
	from.Add(driver, link, append([]int{}, fds...)) // never nil: a port without descriptors is an error
	if s.specs[p.No] != nil {
		if err := s.removeLocked(p.No); err != nil {
			return fmt.Errorf("port %d %q: %w", p.No, p.Name, err)
		}
	}
	by := *s.open
	by.From, by.Given, by.Killed, by.Why = from, true, true, cmp.Or(p.Why, "the controller gave the port")
	return s.openAndAdd(p, func() (ports.Port, error) {
		port, err := s.openPort(&by, withDriver(p, driver))
		if err != nil {
			return nil, err
		}
		if err := from.BeginTraffic(); err != nil {
			return nil, errors.Join(err, port.Close())
		}
		return port, nil
	})
}

// driverAndLink is the driver of the descriptors, and the link under which they are stored. If the
// spec leaves the driver to the controller, the first descriptor decides: for AF_XDP it is memory.
func driverAndLink(p *door.PortSpec, fds []int) (driver, link string) {
	xdp := len(fds) > 0 && isMemory(fds[0])
	switch {
	case p.Driver == door.DriverTap && p.Tap != nil:
		return door.DriverTap, p.Link
	case p.Driver == door.DriverTunnel && p.Tunnel != nil:
		if p.Tunnel.Driver == door.DriverAFXDP || p.Tunnel.Driver != door.DriverKernel && xdp {
			return door.DriverUplink, p.Name
		}
		return door.DriverUnderlay, p.Name
	case p.Driver == door.DriverAFXDP || p.Driver != door.DriverAFPacket && xdp:
		return door.DriverAFXDP, p.Link
	}
	return door.DriverAFPacket, p.Link
}

// isMemory reports whether a descriptor is of memory that processes share (memfd_create(2)).
func isMemory(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil
}

// withDriver is a spec with the driver that the controller has chosen.
func withDriver(p *door.PortSpec, driver string) *door.PortSpec {
	as := *p
	switch driver {
	case door.DriverUnderlay, door.DriverUplink:
		t := *p.Tunnel
		if t.Driver = door.DriverKernel; driver == door.DriverUplink {
			t.Driver = door.DriverAFXDP
		}
		as.Tunnel = &t
	default:
		as.Driver = driver
	}
	return &as
}

// LendPort implements door.PortOpener. A port on AF_XDP survives a kill if it has memory of its
// own, as all ports of a confined switch have.
func (s *PortSet) LendPort(no uint32, to func(why string, fds []int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, is := s.opened[no].(ports.Heritable); is {
		info := h.Info()
		if xdp := info.Driver == door.DriverAFXDP || info.Driver == door.DriverUplink; !xdp || s.confined {
			to(info.Why, h.Descriptors())
			return
		}
	}
	to("", nil)
}

// PausePorts implements door.PortOpener.
func (s *PortSet) PausePorts() (resume func()) { return s.sw.PauseReceiving() }

// Programs implements door.PortOpener.
func (s *PortSet) Programs(q door.ProgramsQuery) []int {
	if q != (door.ProgramsQuery{}) {
		var p *ebpf.Program
		if k, known := tunnel.KindNamed(q.Tunnel); known {
			p = s.open.Offload.Unwrap(k, q.IPv6)
		} else if q.Driver == door.DriverTap {
			p = s.open.Offload.Gateway()
		}
		if p == nil {
			return nil
		}
		return []int{p.FD()}
	}
	if p := s.open.Offload.Programs(); p.Filter != nil {
		return []int{p.Filter.FD(), p.Ingress.FD()}
	}
	return nil
}

// programsOf are the programs of a confined switch, for the sockets that the controller gives it.
// The caller closes them after attaching.
func programsOf(sw *door.Client) (p afpacket.Programs, err error) {
	fds, err := sw.Programs(door.ProgramsQuery{})
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

// programOf is the program of a confined switch for the tunnel's link or a tap; nil if there is
// none. The caller closes it after attaching.
func programOf(sw *door.Client, q door.ProgramsQuery) (*ebpf.Program, error) {
	fds, err := sw.Programs(q)
	if err != nil || len(fds) != 1 {
		door.CloseDescriptors(fds) // the switch has only programs of packet sockets
		return nil, err
	}
	return ebpf.NewProgramFromFD(fds[0])
}

// Giver opens ports for a confined switch, in the network namespace of the calling thread.
type Giver struct {
	Switch *door.Client
	// Owner names the process that makes taps.
	Owner string
	Log   *slog.Logger
}

// OpenIn makes the switch open a port. For a confined switch, it opens the port itself and gives
// it.
func (g *Giver) OpenIn(spec *door.PortSpec) error {
	err := g.Switch.OpenPort(spec)
	if !errors.Is(err, door.ErrConfined) {
		return err
	}
	p, err := g.Open(spec)
	if err != nil {
		return err
	}
	given := *spec
	given.Why = p.Info().Why
	if err := g.Switch.GivePort(&given, p.Descriptors()); err != nil {
		return errors.Join(err, Withdraw(p))
	}
	return CloseTaken(p)
}

// Again gives the switch a port of a killed switch, with the descriptors that the killed one had
// lent (door.Client.LendPort). The programs are those of the new switch. If it fails, the caller
// opens the port.
func (g *Giver) Again(spec *door.PortSpec, fds []int) error {
	if err := g.reprogram(spec, fds); err != nil {
		return err
	}
	return g.Switch.GivePort(spec, fds)
}

// reprogram replaces a port's programs with those of the switch.
func (g *Giver) reprogram(spec *door.PortSpec, fds []int) error {
	driver, name := driverAndLink(spec, fds)
	var q door.ProgramsQuery
	switch driver {
	case door.DriverAFPacket:
		programs, err := programsOf(g.Switch)
		if err != nil {
			return err
		}
		return errors.Join(afpacket.Reprogram(name, fds[0], programs), programs.Filter.Close(), programs.Ingress.Close())
	case door.DriverTap:
		if spec.Tap.Aside {
			return nil
		}
		q.Driver = door.DriverTap
	case door.DriverAFXDP, door.DriverUplink: // its program does not belong to the switch
		return nil
	default:
		q = door.ProgramsQuery{Tunnel: spec.Tunnel.Kind, IPv6: spec.Tunnel.Local.Is6()}
	}
	program, err := programOf(g.Switch, q)
	if err != nil {
		return err
	}
	return errors.Join(relink(fds[len(fds)-1], program), program.Close())
}

// relink makes the link of a program run another program, if a descriptor is such a link.
func relink(fd int, program *ebpf.Program) error {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l, err := link.NewFromFD(fd) // closes fd after an error
	switch {
	case err != nil && program == nil:
		return nil
	case err != nil:
		return fmt.Errorf("the port has no program: %w", err)
	case program == nil:
		return errors.Join(errors.New("the port has a program, and the switch has none"), l.Close())
	}
	return errors.Join(l.Update(program), l.Close())
}

// Open opens a port. It moves no packet; packets wait in its descriptors. The caller gives those
// to a switch and closes the port: with CloseTaken, or with Withdraw if the switch has not taken
// it.
func (g *Giver) Open(p *door.PortSpec) (ports.Heritable, error) {
	o := &Opener{Owner: g.Owner, Given: true, Log: g.Log}
	o.Room(1)
	switch {
	case p.Driver == door.DriverTap && p.Tap != nil:
		return g.openTap(o, p)
	case p.Driver == door.DriverTunnel && p.Tunnel != nil:
		return g.openTunnel(o, p)
	case p.Link == "":
		return nil, errNoLink
	}
	if err := g.setCards(o); err != nil {
		return nil, err
	}
	programs, err := programsOf(g.Switch)
	if err != nil {
		return nil, err
	}
	defer func() { _ = errors.Join(programs.Filter.Close(), programs.Ingress.Close()) }() // socket and link have them
	o.Offload = &Offload{programs: programs}
	return o.Link(p.Link, p.Driver)
}

func (g *Giver) openTap(o *Opener, p *door.PortSpec) (ports.Heritable, error) {
	t, err := tapOptions(p)
	if err != nil {
		return nil, err
	}
	gateway, err := programOf(g.Switch, door.ProgramsQuery{Driver: door.DriverTap})
	if err != nil {
		return nil, err
	}
	defer gateway.Close() // the link has it
	o.Offload = &Offload{gateway: gateway}
	return orNone(o.Tap(t))
}

func (g *Giver) openTunnel(o *Opener, p *door.PortSpec) (ports.Heritable, error) {
	c, err := tunnelConfig(p)
	if err == nil {
		err = g.setCards(o)
	}
	if err != nil {
		return nil, err
	}
	unwrap, err := programOf(g.Switch, door.ProgramsQuery{Tunnel: p.Tunnel.Kind, IPv6: c.Local.Is6()})
	if err != nil {
		return nil, err
	}
	defer unwrap.Close() // the link has it
	o.Offload = &Offload{unwrap: unwrap}
	return orNone(o.Tunnel(c, p.Tunnel.Driver, p.Tunnel.Uplink))
}

// setCards sets AF_XDP's options for cards from the switch's settings.
func (g *Giver) setCards(o *Opener) error {
	info, err := g.Switch.Info(context.Background())
	if err == nil {
		c := &info.Cards
		o.Cards = CardsOf(local.AFXDP{ZeroCopy: c.ZeroCopy, BusyPoll: local.Duration(c.BusyPollNS), BusyPollBudget: c.BusyPollBudget})
	}
	return err
}

// Cards implements door.PortOpener.
func (s *PortSet) Cards() door.Cards {
	c := &s.open.Cards
	return door.Cards{ZeroCopy: c.Mode == afxdp.ZeroCopy, BusyPollNS: int64(c.BusyPoll.Time), BusyPollBudget: c.BusyPoll.Budget}
}

// orNone turns a nil pointer into a nil port.
func orNone[P ports.Heritable](p P, err error) (ports.Heritable, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// CloseTaken closes a port that a switch has taken. The device and the program stay. The program
// of AF_XDP stays as long as the switch has the port.
func CloseTaken(p ports.Heritable) error {
	p.Rest()
	if t, is := p.(*tap.Port); is {
		t.Keep(true)
	}
	return p.Close()
}

// Withdraw closes a port that no switch has taken, and restores the link. It removes the program,
// and a device that was made for the port.
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

// TakeBack removes the remains of a given port that the switch has closed: the program of a packet
// socket, or an owner's tap. A missing link is not an error.
func TakeBack(link, driver, owner string) error {
	switch driver {
	case door.DriverAFPacket:
		return afpacket.CleanLink(link)
	case door.DriverTap:
		_, err := tap.Sweep(owner, func(name string) bool { return name != link })
		return err
	}
	return nil
}

// GiveEgresses implements door.PortOpener. The sockets are closed if there is no tunnel.
func (s *PortSet) GiveEgresses(e *door.TunnelEgresses, fds []int) error {
	t := s.tunnelAt(e.Port)
	if t == nil {
		door.CloseDescriptors(fds)
		return errNoTunnel
	}
	return errors.Join(t.AddReceivers(fds), t.SetEgresses(e.Here, e.Far))
}

// SetEgresses sends the addresses of Egresses to a switch. If the switch is confined, it gets
// sockets that receive there, which are opened in the network namespace of the calling thread.
// kind is that of the tunnel.
func SetEgresses(sw *door.Client, kind string, e *door.TunnelEgresses) error {
	err := sw.SetTunnelEgresses(e)
	if !errors.Is(err, door.ErrConfined) {
		return err
	}
	k, known := tunnel.KindNamed(kind)
	if !known {
		return fmt.Errorf("tunnel.kind: %q is none of geneve, vxlan and gre", kind)
	}
	// At an address where the switch already receives, no other UDP socket can be opened. If
	// another process receives there, the switch reports the missing socket.
	fds, opened := underlay.OpenReceivers(k, e.Here)
	defer door.CloseDescriptors(fds)
	if err = sw.GiveEgresses(e, fds); err != nil {
		return errors.Join(err, opened)
	}
	return nil
}
