package control

import (
	"maps"
	"sync"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
)

// sightings maps numbers in packets that the agent gets to objects: conjunction ids to rules, and ports to
// Pods.
//
// It has its own lock, because the Reconciler holds its lock while it installs a bundle. So a question about
// a packet never waits for a bundle. A rule is known while it is wanted.
type sightings struct {
	mu    sync.RWMutex
	rules map[uint32]*policy.RealisedRule
	ports map[cluster.Name]cluster.SwitchPort // the source of pods
	pods  map[uint32]cluster.Name
}

// RuleByID returns the wanted rule with a conjunction id, or nil.
func (r *Reconciler) RuleByID(id uint32) *policy.RealisedRule {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	return r.seen.rules[id]
}

// PodAt returns the Pod at a port of the switch; false if there is none.
func (r *Reconciler) PodAt(port uint32) (cluster.Name, bool) {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	n, ok := r.seen.pods[port]
	return n, ok
}

// PodMAC returns the MAC address of the Pod at a port; false if there is none.
func (r *Reconciler) PodMAC(port uint32) ([6]byte, bool) {
	r.seen.mu.RLock()
	defer r.seen.mu.RUnlock()
	n, ok := r.seen.pods[port]
	return r.seen.ports[n].MAC, ok
}

// noteRule records a rule by its id. A rule that is removed and added in one change keeps its id; forget
// comes first.
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

// setPods sets the ports of Pods, and keeps the map.
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
