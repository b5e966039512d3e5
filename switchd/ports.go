package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/tunnel"
)

// PortSet has the ports that a switch opens for its controller, with their specs. Any goroutine
// may call its methods.
type PortSet struct {
	sw   *local.Switch
	open *Opener
	// confined is set if the process may open no port by name.
	confined bool

	mu     sync.Mutex
	specs  map[uint32]*door.PortSpec
	opened map[uint32]ports.Port
	// changes counts the changes of specs. moved receives when a tunnel is opened or closed.
	changes       uint64
	tunnelChanged chan struct{}
}

var _ door.PortOpener = (*PortSet)(nil)

// NewPortSet makes an empty set for a switch.
func NewPortSet(sw *local.Switch, open *Opener) *PortSet {
	return &PortSet{sw: sw, open: open, specs: map[uint32]*door.PortSpec{}, opened: map[uint32]ports.Port{}, tunnelChanged: make(chan struct{}, 1)}
}

// Confine stops the set from opening ports by name. Call it before the first port.
func (s *PortSet) Confine() { s.confined = true }

// Confined implements door.PortOpener.
func (s *PortSet) Confined() bool { return s.confined }

// OpenPort implements door.PortOpener. An existing port with the same spec stays, with the new
// security. Another port of the same number is closed first.
func (s *PortSet) OpenPort(p *door.PortSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.specs[p.No]; had != nil {
		if _, up := s.linkState(p.No); up && openedAlike(had, p) {
			s.specs[p.No] = p
			s.changes++
			return s.sw.SecurePort(p.No, p.Security)
		}
		if t, is := s.opened[p.No].(*tap.Port); is && sameDevice(had, p) {
			t.Keep(true)
		}
		if err := s.removeLocked(p.No); err != nil {
			return err
		}
	}
	if s.confined {
		return door.ErrConfined
	}
	return s.openAndAdd(p, func() (ports.Port, error) { return s.openPort(s.open, p) })
}

// inherit continues with a port of the predecessor.
func (s *PortSet) inherit(p *door.PortSpec, from *Inheritance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := *s.open
	by.From, by.Given, by.Why = from, s.confined, p.Why
	as := p
	if s.confined {
		as = withDriver(p, from.driverOf(cmp.Or(p.Link, p.Name)))
	}
	return s.openAndAdd(p, func() (ports.Port, error) { return s.openPort(&by, as) })
}

// openAndAdd opens a port and adds it to the switch. The caller holds s.mu.
func (s *PortSet) openAndAdd(p *door.PortSpec, open func() (ports.Port, error)) error {
	port, err := open()
	if err != nil {
		return fmt.Errorf("port %d %q: %w", p.No, p.Name, err)
	}
	if err := s.sw.AddSecuredPort(p.No, port, p.Security); err != nil {
		return errors.Join(fmt.Errorf("port %d %q: %w", p.No, p.Name, err), port.Close())
	}
	s.specs[p.No], s.opened[p.No] = p, port
	s.signalTunnelChange(p)
	s.changes++
	return nil
}

// linkState reports whether the switch has a port, and whether its link is up.
func (s *PortSet) linkState(no uint32) (there, up bool) {
	for _, p := range s.sw.Ports() {
		if p.No == no {
			return true, p.Up
		}
	}
	return false, false
}

// openPort opens a port by its driver.
func (s *PortSet) openPort(by *Opener, p *door.PortSpec) (ports.Port, error) {
	switch {
	case p.Driver == door.DriverTap && p.Tap != nil:
		return s.openTap(by, p)
	case p.Driver == door.DriverTunnel && p.Tunnel != nil:
		return s.openTunnel(by, p)
	case p.Link == "":
		return nil, errNoLink
	}
	return by.Link(p.Link, p.Driver)
}

// errNoLink: a port cannot be opened without its link.
var errNoLink = errors.New("it names no link")

func (s *PortSet) openTap(by *Opener, p *door.PortSpec) (ports.Port, error) {
	o, err := tapOptions(p)
	if err != nil {
		return nil, err
	}
	t, err := by.Tap(o)
	if err != nil {
		return nil, err // t would be a non-nil Port
	}
	return t, nil
}

// tapOptions are the options of a tap.
func tapOptions(p *door.PortSpec) (tap.Options, error) {
	o := tap.Options{Name: p.Link, MTU: p.Tap.MTU, Marks: p.Tap.Marks, Aside: p.Tap.Aside, Owner: p.Tap.Owner}
	if p.Tap.MAC != "" {
		mac, err := net.ParseMAC(p.Tap.MAC)
		if err != nil || len(mac) != len(o.MAC) {
			return o, fmt.Errorf("tap.mac: %q is no MAC address", p.Tap.MAC)
		}
		o.MAC = [6]byte(mac)
	}
	return o, nil
}

func (s *PortSet) openTunnel(by *Opener, p *door.PortSpec) (ports.Port, error) {
	if err := s.refuseSecondTunnel(p); err != nil {
		return nil, err
	}
	c, err := tunnelConfig(p)
	if err != nil {
		return nil, err
	}
	return by.Tunnel(c, p.Tunnel.Driver, p.Tunnel.Uplink)
}

// refuseSecondTunnel refuses a second tunnel of a kind at one address, because all frames would
// enter at the first. The caller holds s.mu.
func (s *PortSet) refuseSecondTunnel(p *door.PortSpec) error {
	for no, had := range s.specs {
		if t := had.Tunnel; no != p.No && t != nil && t.Kind == p.Tunnel.Kind && t.Local == p.Tunnel.Local {
			return fmt.Errorf("port %d %q is the %s tunnel at %v already: use that port, with entries that write tun_dst, or another local address", no, had.Name, t.Kind, t.Local)
		}
	}
	return nil
}

// tunnelConfig is the configuration of a tunnel.
func tunnelConfig(p *door.PortSpec) (underlay.Config, error) {
	kind, known := tunnel.KindNamed(p.Tunnel.Kind)
	if !known {
		return underlay.Config{}, fmt.Errorf("tunnel.kind: %q is none of geneve, vxlan and gre", p.Tunnel.Kind)
	}
	return underlay.Config{
		Name: p.Name, Kind: kind, Local: p.Tunnel.Local, MTU: p.Tunnel.MTU, Peers: underlayPeers(p.Tunnel.Peers),
		Pods: p.Tunnel.Pods, AnyNetwork: p.Tunnel.AnyNetwork, AnyPeer: p.Tunnel.AnyPeer,
		Only: p.Tunnel.Only, Network: p.Tunnel.Network, Options: p.Tunnel.Options,
	}, nil
}

func underlayPeers(all []door.TunnelPeer) (peers []underlay.Peer) {
	for _, p := range all {
		peers = append(peers, underlay.Peer{Address: p.Address, Pods: p.Pods})
	}
	return peers
}

// openedAlike reports whether two specs open the same port. Their security may differ, and so may
// the peers of a tunnel, which are set apart.
func openedAlike(a, b *door.PortSpec) bool {
	plain := func(p *door.PortSpec) string {
		text := fmt.Sprint(p.Name, p.Driver, p.Link)
		if p.Tap != nil {
			text += fmt.Sprint(*p.Tap)
		}
		if t := p.Tunnel; t != nil {
			text += fmt.Sprint(t.Kind, t.Local, t.MTU, t.Pods, t.AnyNetwork, t.AnyPeer, t.Options, t.Only, t.Network, t.Driver, t.Uplink)
		}
		return text
	}
	return plain(a) == plain(b)
}

// sameDevice reports whether two specs have the same device with an owner. The device then stays,
// with its index and its addresses, and only its MAC address or MTU changes.
func sameDevice(a, b *door.PortSpec) bool {
	return a.Tap != nil && b.Tap != nil && a.Link == b.Link && a.Tap.Owner == b.Tap.Owner && a.Tap.Owner != ""
}

// RemovePort closes a port.
func (s *PortSet) RemovePort(no uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(no)
}

// removeLocked closes a port. The caller holds s.mu.
func (s *PortSet) removeLocked(no uint32) error {
	had := s.specs[no]
	delete(s.specs, no)
	delete(s.opened, no)
	if had != nil {
		s.signalTunnelChange(had)
	}
	s.changes++
	if there, _ := s.linkState(no); !there {
		return nil
	}
	err := s.sw.Switch.RemovePort(no)
	s.open.Sweep()
	return err
}

// withPorts is a switch whose ports are those of a set.
type withPorts struct {
	*local.Switch
	ports *PortSet
}

// RemovePort implements door.Ports.
func (s *withPorts) RemovePort(no uint32) error { return s.ports.RemovePort(no) }

// Specs are the specs of the ports.
func (s *PortSet) Specs() (all []door.PortSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.specs {
		all = append(all, *p)
	}
	return all
}

// Changes counts the changes of Specs.
func (s *PortSet) Changes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// Tunnel is the first port to other Nodes; nil if there is none.
func (s *PortSet) Tunnel() Tunnel {
	if all := s.Tunnels(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// tunnelAt is the tunnel at a port; the first one for 0.
func (s *PortSet) tunnelAt(no uint32) Tunnel {
	if no == 0 {
		return s.Tunnel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.opened[no].(Tunnel)
	return t
}

// Tunnels are the ports to other Nodes, by their numbers.
func (s *PortSet) Tunnels() (all []Tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, no := range slices.Sorted(maps.Keys(s.opened)) {
		if t, is := s.opened[no].(Tunnel); is {
			all = append(all, t)
		}
	}
	return all
}

// TunnelChanged receives when a tunnel is opened or closed.
func (s *PortSet) TunnelChanged() <-chan struct{} { return s.tunnelChanged }

// signalTunnelChange signals that a tunnel was opened or closed. The caller holds s.mu.
func (s *PortSet) signalTunnelChange(p *door.PortSpec) {
	if p.Tunnel == nil {
		return
	}
	select {
	case s.tunnelChanged <- struct{}{}:
	default: // a signal is already pending
	}
}

// errNoTunnel is the error of requests about a missing tunnel.
var errNoTunnel = errors.New("there is no tunnel port")

// withTunnel calls f with the tunnel.
func (s *PortSet) withTunnel(f func(Tunnel) error) error {
	t := s.Tunnel()
	if t == nil {
		return errNoTunnel
	}
	return f(t)
}

// SetTunnelPeers implements door.PortOpener, as the methods below do.
func (s *PortSet) SetTunnelPeers(all []door.TunnelPeer) error {
	return s.withTunnel(func(t Tunnel) error { t.SetPeers(underlayPeers(all)); return nil })
}

// SetTunnelSilent sets the Nodes that do not answer.
func (s *PortSet) SetTunnelSilent(all []netip.Addr) error {
	return s.withTunnel(func(t Tunnel) error { t.SetSilent(all); return nil })
}

// SetTunnelEgresses sets the addresses of Egresses.
func (s *PortSet) SetTunnelEgresses(e *door.TunnelEgresses) error {
	t := s.tunnelAt(e.Port)
	if t == nil {
		return errNoTunnel
	}
	err := t.SetEgresses(e.Here, e.Far)
	if errors.Is(err, underlay.ErrNotGiven) {
		return door.ErrConfined
	}
	return err
}

// TunnelPathMTU is the inner MTU to a Node.
func (s *PortSet) TunnelPathMTU(node netip.Addr) (mtu int, err error) {
	err = s.withTunnel(func(t Tunnel) error { mtu = t.PathMTU(node); return nil })
	return mtu, err
}

// KeepTaps sets whether the devices of taps stay after their ports close.
func (s *PortSet) KeepTaps(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.opened {
		if t, is := p.(*tap.Port); is {
			t.Keep(keep)
		}
	}
}
