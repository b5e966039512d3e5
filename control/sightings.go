package control

import (
	"maps"
	"sync"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
)

// What a packet that the switch hands to the agent has to do with objects: the
// rule behind a conjunction id, and the Pod behind a port.
//
// sightings is apart from the Reconciler's own lock, which is held while a
// bundle is installed: who asks about a packet never waits for that. A rule is
// known from when it is wanted until it is not.
type sightings struct {
	mu    sync.RWMutex
	rules map[uint32]*policy.RealisedRule
	ports map[cluster.Name]cluster.SwitchPort // what pods was made of
	pods  map[uint32]cluster.Name
}

// RuleByID is the rule of a conjunction id; nil when there is none, or none any
// more.
func (r *Reconciler) RuleByID(id uint32) *policy.RealisedRule {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	return r.seen.rules[id]
}

// PodAt is the Pod at a port of the switch; false when there is none.
func (r *Reconciler) PodAt(port uint32) (cluster.Name, bool) {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	n, ok := r.seen.pods[port]
	return n, ok
}

// PodMAC is the MAC address of the Pod at a port; false when there is none.
func (r *Reconciler) PodMAC(port uint32) ([6]byte, bool) {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	n, ok := r.seen.pods[port]
	return r.seen.ports[n].MAC, ok
}

// noteRule remembers a rule by its id. A rule that is removed and added at once
// keeps its id, in this order.
func (s *sightings) noteRule(r *policy.RealisedRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[r.Rule.ID] = r
}

func (s *sightings) forget(r *policy.RealisedRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rules, r.Rule.ID)
}

// clear forgets all rules.
func (s *sightings) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.rules)
}

// setPods takes the ports of Pods by their names, which it keeps.
func (s *sightings) setPods(ports map[cluster.Name]cluster.SwitchPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.Equal(s.ports, ports) {
		return
	}
	s.ports, s.pods = ports, make(map[uint32]cluster.Name, len(ports))
	for n, p := range ports {
		s.pods[p.OFPort] = n
	}
}
