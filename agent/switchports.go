package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/switchd"
)

// switchPorts are the ports that the agent has opened in the switch. A switch that is
// confined may open none itself: the agent opens them, gives the switch the descriptors
// and keeps none. The program of a packet socket is attached to the link without a
// bpf_link, and the device of a tap has an owner: both stay when either process ends. The
// program of AF_XDP has a bpf_link, and goes when the switch ends.
type switchPorts struct {
	sw    *door.Client
	owner string // of taps
	log   *slog.Logger

	mu   sync.Mutex
	open map[uint32]*door.PortSpec
}

// openPort has the switch open a port, or gives it the port.
func (s *switchPorts) openPort(p *door.PortSpec) error {
	if err := s.openIn(s.sw, p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[uint32]*door.PortSpec{}
	}
	s.open[p.No] = p
	return nil
}

// openIn opens a port in a switch.
func (s *switchPorts) openIn(sw *door.Client, spec *door.PortSpec) error {
	return (&switchd.Giver{Switch: sw, Owner: s.owner, Log: s.log}).OpenIn(spec)
}

// SecurePort says what a port may send from now on.
func (s *switchPorts) SecurePort(no uint32, security l2.PortSecurity) error {
	if err := s.sw.SecurePort(no, security); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.open[no]; had != nil {
		now := *had
		now.Security = security
		s.open[no] = &now
	}
	return nil
}

// RemovePort closes a port. What a confined switch may not take back, the agent does.
func (s *switchPorts) RemovePort(no uint32) error {
	for _, p := range s.sw.Ports() {
		if p.No == no {
			return s.remove(&p)
		}
	}
	return s.sw.RemovePort(no)
}

// remove closes a port of the switch.
func (s *switchPorts) remove(p *telemetry.PortStats) error {
	s.mu.Lock()
	delete(s.open, p.No)
	s.mu.Unlock()
	err := s.sw.RemovePort(p.No)
	info, infoErr := s.sw.Info(context.Background())
	if infoErr != nil || !info.Confined {
		return errors.Join(err, infoErr)
	}
	return errors.Join(err, switchd.TakeBack(p.Name, p.Driver, s.owner))
}

// removeAll closes all ports of the switch, those of an agent before too. If the switch has
// ended before, their programs go.
func (s *switchPorts) removeAll() error {
	var errs []error
	for _, p := range s.sw.Ports() {
		errs = append(errs, s.remove(&p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.open {
		if p.Link != "" {
			errs = append(errs, switchd.TakeBack(p.Link, switchd.DriverAFPacket, s.owner))
		}
	}
	return errors.Join(errs...)
}

// reopen opens the ports in a switch that has been started again, some of them at once. The
// agent opens later what cannot be opened now.
func (s *switchPorts) reopen(sw *door.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reopening sync.WaitGroup
	room := make(chan struct{}, podports.AtOnce)
	for _, p := range s.open {
		room <- struct{}{}
		reopening.Go(func() { s.runReopen(sw, p); <-room })
	}
	reopening.Wait()
	s.log.Info("the switch runs again", "ports", len(s.open))
}

// runReopen opens one port.
func (s *switchPorts) runReopen(sw *door.Client, p *door.PortSpec) {
	if err := s.openIn(sw, p); err != nil {
		s.log.Warn("a port is not opened again yet", "port", p.Name, "error", err)
	}
}
