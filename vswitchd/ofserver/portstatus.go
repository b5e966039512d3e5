package ofserver

import (
	"errors"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// portBits are the supported settings of a port, by their bits.
func portBits(c *telemetry.PortConfig) map[uint32]*bool {
	return map[uint32]*bool{
		openflow.PortDown: &c.Down, openflow.PortNoReceive: &c.NoReceive, openflow.PortNoForward: &c.NoForward,
		openflow.PortNoFlood: &c.NoFlood, openflow.PortNoPacketIn: &c.NoPacketIn,
	}
}

// configBits are the settings of a port as bits of OpenFlow.
func configBits(c *telemetry.PortConfig) (bits uint32) {
	for bit, on := range portBits(c) {
		if *on {
			bits |= bit
		}
	}
	return bits
}

// portMod changes settings of a port, and notifies controllers.
func (c *connection) portMod(q *openflow.PortMod) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	if err := c.s.setPort(q); err != nil {
		return err
	}
	c.s.WatchPorts()
	return nil
}

// setPort changes settings of a port.
func (s *Server) setPort(q *openflow.PortMod) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	all, err := listed(s.sw, s.sw.Ports)
	if err != nil {
		return err
	}
	for i := range all {
		p := &all[i]
		if p.No != q.No {
			continue
		}
		if q.MAC != p.MAC {
			return openflow.Fail(openflow.PortModBadHWAddr, "port %d has the address %v", q.No, p.MAC)
		}
		config := p.Config
		bits := portBits(&config)
		for bit := uint32(1); bit != 0; bit <<= 1 {
			on := q.Config&bit != 0
			switch field := bits[bit]; {
			case q.Mask&bit == 0:
			case field != nil:
				*field = on
			case on:
				return openflow.Fail(openflow.PortModNotPermitted, "port %d: setting %#x is not supported, because there is no STP", q.No, bit)
			}
		}
		if config == p.Config {
			return nil
		}
		if err := s.Switch.ConfigurePort(q.No, config); err != nil {
			return openflow.Fail(openflow.PortModNotPermitted, "%v", err)
		}
		s.settings[q.No] = config
		return nil
	}
	return openflow.Fail(openflow.PortModBadPort, "there is no port %d", q.No)
}

// RestorePorts applies the settings that controllers have made to the ports of a new switch
// process.
func (s *Server) RestorePorts() error {
	s.changes.Lock()
	defer s.changes.Unlock()
	all, err := listed(s.sw, s.sw.Ports)
	if err != nil {
		return err
	}
	var errs []error
	for i := range all {
		if c, set := s.settings[all[i].No]; set && c != all[i].Config {
			errs = append(errs, s.Switch.ConfigurePort(all[i].No, c))
		}
	}
	return errors.Join(errs...)
}

// ForgetPort forgets the settings of a port that is removed.
func (s *Server) ForgetPort(no uint32) {
	s.changes.Lock()
	defer s.changes.Unlock()
	delete(s.settings, no)
}

// WatchPorts notifies controllers of ports that have come, gone or changed since the last call. If
// the switch does not answer, it does nothing.
func (s *Server) WatchPorts() {
	s.watching.Lock()
	defer s.watching.Unlock()
	all, err := s.ports()
	if err != nil {
		return
	}
	first, now := s.known == nil, map[uint32]openflow.Port{}
	for _, p := range all {
		now[p.No] = p
		before, had := s.known[p.No]
		switch {
		case first, had && before == p:
		case had && before.Name == p.Name:
			s.notifyPort(openflow.PortModified, p)
		default:
			if had {
				s.notifyPort(openflow.PortDeleted, before)
			}
			s.notifyPort(openflow.PortAdded, p)
		}
	}
	for no, p := range s.known {
		if _, stays := now[no]; !stays {
			s.notifyPort(openflow.PortDeleted, p)
		}
	}
	s.known = now
}

// notifyPort notifies the controllers that want it of a port. A controller that does not read loses
// the notice.
func (s *Server) notifyPort(reason openflow.PortReason, p openflow.Port) {
	m := &openflow.PortStatus{Reason: reason, Port: p}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		if !c.wantsPort(reason) {
			continue
		}
		select {
		case c.notices <- m:
		default:
			s.Log.Warn("a controller does not read, and loses the status of a port", "port", p.Name)
		}
	}
}

func (c *connection) wantsPort(reason openflow.PortReason) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wants(openflow.AsyncPortStatus, uint8(reason))
}

// setAsync sets which asynchronous messages the controller gets.
func (c *connection) setAsync(q *openflow.SetAsync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, given := range q.Given {
		for of, yes := range given {
			if yes {
				c.async[kind][of] = q.Config[kind][of]
			}
		}
	}
}

// asyncConfig is the answer to a controller that requests its asynchronous configuration.
func (c *connection) asyncConfig() *openflow.AsyncReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &openflow.AsyncReply{Config: c.async}
}
