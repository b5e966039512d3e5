// Package bridgetest has a switch for tests of package bridge and of the packages that use it.
package bridgetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/antrail/antrail/vswitchd/bridge"
)

// Switch is a bridge.Switch that records its bridges, ports and calls.
type Switch struct {
	mu      sync.Mutex
	bridges map[string]bridge.Bridge
	ports   map[string]bridge.Port // by "BRIDGE/PORT"
	calls   []string
}

// New makes a switch without bridges.
func New() *Switch {
	return &Switch{bridges: map[string]bridge.Bridge{}, ports: map[string]bridge.Port{}}
}

// Facts implements bridge.Switch.
func (s *Switch) Facts() bridge.Facts {
	return bridge.Facts{
		Version: "3.1.0", DatapathTypes: []string{"dummy", "netdev"}, DatapathVersion: "<built-in>",
		InterfaceTypes: []string{"dummy", "internal", "system", "geneve", "patch"},
		Capabilities:   map[string]string{"ct_zero_snat": "true"},
	}
}

// record adds a call to calls. The lock is held.
func (s *Switch) record(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// TakeCalls returns the calls since the last time.
func (s *Switch) TakeCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// AddBridge implements bridge.Switch. It refuses a bridge with other_config:refuse.
func (s *Switch) AddBridge(b bridge.Bridge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("add bridge %s", b.Name)
	if b.OtherConfig["refuse"] != "" {
		return errors.New("refused")
	}
	s.bridges[b.Name] = b
	return nil
}

// ChangeBridge implements bridge.Switch.
func (s *Switch) ChangeBridge(b bridge.Bridge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("change bridge %s", b.Name)
	s.bridges[b.Name] = b
	return nil
}

// RemoveBridge implements bridge.Switch.
func (s *Switch) RemoveBridge(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("remove bridge %s", name)
	delete(s.bridges, name)
	maps.DeleteFunc(s.ports, func(k string, _ bridge.Port) bool { return strings.HasPrefix(k, name+"/") })
	return nil
}

// AddPort implements bridge.Switch. It has no network devices, so it refuses ports of type system.
func (s *Switch) AddPort(b string, p bridge.Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("add port %s/%s %d %s", b, p.Name, p.Number, p.Type)
	if p.Type == "system" {
		return fmt.Errorf("could not open network device %s (No such device)", p.Name)
	}
	s.ports[b+"/"+p.Name] = p
	return nil
}

// ChangePort implements bridge.Switch.
func (s *Switch) ChangePort(b string, p bridge.Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("change port %s/%s", b, p.Name)
	s.ports[b+"/"+p.Name] = p
	return nil
}

// RemovePort implements bridge.Switch.
func (s *Switch) RemovePort(b, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("remove port %s/%s", b, name)
	delete(s.ports, b+"/"+name)
	return nil
}

// PortState implements bridge.Switch.
func (s *Switch) PortState(b, name string) bridge.PortState {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ports[b+"/"+name]
	mac := cmp.Or(p.MAC, "aa:55:aa:55:00:01")
	if p.Number == bridge.LocalPort {
		mac = s.bridges[b].MAC
	}
	return bridge.PortState{MAC: mac, MTU: 1500, AdminUp: true, LinkUp: true, Statistics: map[string]int64{"rx_packets": 0}}
}

// ControllerStates implements bridge.Switch.
func (s *Switch) ControllerStates(string) map[string]bridge.ControllerState { return nil }

// Names are the ports of the switch, sorted.
func (s *Switch) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.ports))
}

// Bridge is a bridge of the switch; the zero value if it has none of the name.
func (s *Switch) Bridge(name string) bridge.Bridge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bridges[name]
}

// Port is a port of the switch; the zero value if it has none of the name.
func (s *Switch) Port(of, name string) bridge.Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports[of+"/"+name]
}
