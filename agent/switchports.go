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

// switchPorts are the ports that the agent opened in the switch. A confined switch may open
// none itself. The agent opens them, gives the switch their descriptors, and keeps copies that
// the switch lends (borrow). A packet socket's program is attached to the link without a
// bpf_link, and a tap's device has an owner: both stay when either process ends. AF_XDP's
// program has a bpf_link, and goes with the last descriptor.
type switchPorts struct {
	sw    *door.Client
	owner string // of taps
	log   *slog.Logger

	// borrows is set if the agent launches the next switch. The agent then keeps copies of the
	// ports' descriptors for it.
	borrows bool

	mu   sync.Mutex
	open map[uint32]*door.PortSpec
	lent map[uint32]lentPort
}

// lentPort is a port of a switch that may be killed.
type lentPort struct {
	why string // of its driver: why the driver was chosen
	fds []int
}

// openPort opens a port in the switch. It first closes copies of an earlier port of that
// number: they would keep its XDP program on the link.
func (s *switchPorts) openPort(p *door.PortSpec) error {
	s.mu.Lock()
	s.giveBack(p.No)
	s.mu.Unlock()
	if err := s.openIn(s.sw, p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.lent = map[uint32]*door.PortSpec{}, map[uint32]lentPort{}
	}
	s.open[p.No] = p
	s.borrow(p.No)
	return nil
}

// borrow keeps copies of a port's descriptors. s.mu is held.
func (s *switchPorts) borrow(no uint32) {
	s.giveBack(no)
	if !s.borrows {
		return
	}
	if why, fds, err := s.sw.LendPort(no); err == nil { // otherwise the port is opened after a kill
		s.lent[no] = lentPort{why, fds}
	}
}

// giveBack closes the copies of a port's descriptors. s.mu is held.
func (s *switchPorts) giveBack(no uint32) {
	door.CloseDescriptors(s.lent[no].fds)
	delete(s.lent, no)
}

// giveBackAll closes all copies: no switch will take them.
func (s *switchPorts) giveBackAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for no := range s.lent {
		s.giveBack(no)
	}
}

// openIn opens a port in a switch.
func (s *switchPorts) openIn(sw *door.Client, spec *door.PortSpec) error {
	return s.giver(sw).OpenIn(spec)
}

// giver opens ports for a switch.
func (s *switchPorts) giver(sw *door.Client) *switchd.Giver {
	return &switchd.Giver{Switch: sw, Owner: s.owner, Log: s.log}
}

// SecurePort sets what a port may send from now on.
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

// RemovePort closes a port. The agent removes what a confined switch may not.
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
	s.giveBack(p.No)
	s.mu.Unlock()
	err := s.sw.RemovePort(p.No)
	info, infoErr := s.sw.Info(context.Background())
	if infoErr != nil || !info.Confined {
		return errors.Join(err, infoErr)
	}
	return errors.Join(err, switchd.TakeBack(p.Name, p.Driver, s.owner))
}

// removeAll closes all ports of the switch, also those of a previous agent. If the switch has
// ended, it removes the ports' programs.
func (s *switchPorts) removeAll() error {
	var errs []error
	for _, p := range s.sw.Ports() {
		errs = append(errs, s.remove(&p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.open {
		if p.Link != "" {
			errs = append(errs, switchd.TakeBack(p.Link, door.DriverAFPacket, s.owner))
		}
	}
	return errors.Join(errs...)
}

// reopen gives a restarted switch its ports, or opens them. Lent ports start together:
// otherwise a packet could be sent to a port that is still missing. The agent retries later
// what fails now.
func (s *switchPorts) reopen(sw *door.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lent := s.lent
	s.lent = map[uint32]lentPort{}
	g := s.giver(sw)
	resume, err := sw.PausePorts()
	if err != nil {
		s.log.Warn("ports start one by one: the switch cannot pause them", "error", err)
		resume = func() {}
	}
	there := s.eachPort(func(p *door.PortSpec) bool { return s.again(g, p, lent[p.No]) })
	resume()
	s.eachPort(func(p *door.PortSpec) bool {
		if there[p.No] {
			return true
		}
		err := g.OpenIn(p)
		if err != nil {
			s.log.Warn("a port is not opened again yet", "port", p.Name, "error", err)
		}
		return err == nil
	})
	s.log.Info("the switch runs again", "ports", len(s.open))
}

// eachPort calls do for each port, AtOnce in parallel. It returns the numbers of the ports for
// which do was true. The caller holds s.mu.
func (s *switchPorts) eachPort(do func(*door.PortSpec) bool) map[uint32]bool {
	var calls portCalls
	room := make(chan struct{}, podports.AtOnce)
	for _, p := range s.open {
		room <- struct{}{}
		calls.Go(func() { calls.runCall(p, do); <-room })
	}
	calls.Wait()
	return calls.done
}

// portCalls are parallel calls of a function with ports.
type portCalls struct {
	sync.WaitGroup
	mu   sync.Mutex
	done map[uint32]bool
}

// runCall calls the function with one port, and records the result.
func (c *portCalls) runCall(p *door.PortSpec, do func(*door.PortSpec) bool) {
	ok := do(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[uint32]bool{}
	}
	c.done[p.No] = ok
}

// again gives the restarted switch a lent port, and closes the copies. It says whether the
// switch has the port.
func (s *switchPorts) again(g *switchd.Giver, p *door.PortSpec, lent lentPort) bool {
	if lent.fds == nil {
		return false
	}
	defer door.CloseDescriptors(lent.fds)
	spec := *p
	spec.Why = lent.why
	err := g.Again(&spec, lent.fds)
	if err != nil {
		s.log.Debug("cannot hand a lent port over; opening it instead", "port", p.Name, "why", err)
	}
	return err == nil
}
