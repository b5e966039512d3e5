package bridge_test

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

// memorySwitch is a Switch that keeps what it is told, and calls.
type memorySwitch struct {
	mu      sync.Mutex
	bridges map[string]bridge.Bridge
	ports   map[string]bridge.Port // by "BRIDGE/PORT"
	calls   []string
}

func newMemorySwitch() *memorySwitch {
	return &memorySwitch{bridges: map[string]bridge.Bridge{}, ports: map[string]bridge.Port{}}
}

func (s *memorySwitch) Facts() bridge.Facts {
	return bridge.Facts{
		Version: "3.1.0", DatapathTypes: []string{"dummy", "netdev"}, DatapathVersion: "<built-in>",
		InterfaceTypes: []string{"dummy", "internal", "system", "geneve", "patch"},
		Capabilities:   map[string]string{"ct_zero_snat": "true"},
	}
}

// note takes down a call. The lock is held.
func (s *memorySwitch) note(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// takeCalls returns the calls since the last time.
func (s *memorySwitch) takeCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *memorySwitch) AddBridge(b bridge.Bridge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("add bridge %s", b.Name)
	if b.OtherConfig["refuse"] != "" {
		return errors.New("refused")
	}
	s.bridges[b.Name] = b
	return nil
}

func (s *memorySwitch) ChangeBridge(b bridge.Bridge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("change bridge %s", b.Name)
	s.bridges[b.Name] = b
	return nil
}

func (s *memorySwitch) RemoveBridge(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("remove bridge %s", name)
	delete(s.bridges, name)
	maps.DeleteFunc(s.ports, func(k string, _ bridge.Port) bool { return strings.HasPrefix(k, name+"/") })
	return nil
}

func (s *memorySwitch) AddPort(b string, p bridge.Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("add port %s/%s %d %s", b, p.Name, p.Number, p.Type)
	if p.Type == "system" {
		return fmt.Errorf("could not open network device %s (No such device)", p.Name)
	}
	s.ports[b+"/"+p.Name] = p
	return nil
}

func (s *memorySwitch) ChangePort(b string, p bridge.Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("change port %s/%s", b, p.Name)
	s.ports[b+"/"+p.Name] = p
	return nil
}

func (s *memorySwitch) RemovePort(b, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("remove port %s/%s", b, name)
	delete(s.ports, b+"/"+name)
	return nil
}

func (s *memorySwitch) PortState(b, name string) bridge.PortState {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ports[b+"/"+name]
	mac := cmp.Or(p.MAC, "aa:55:aa:55:00:01")
	if p.Number == bridge.LocalPort {
		mac = s.bridges[b].MAC
	}
	return bridge.PortState{MAC: mac, MTU: 1500, AdminUp: true, LinkUp: true, Statistics: map[string]int64{"rx_packets": 0}}
}

func (s *memorySwitch) ControllerStates(string) map[string]bridge.ControllerState { return nil }

// names are the ports of the switch, sorted.
func (s *memorySwitch) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.ports))
}
