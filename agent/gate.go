package agent

import "sync"

// gate is what everybody passes who changes the switch, its ports or the Node: one
// at a time. Who hands the switch over holds it, so that nothing changes meanwhile,
// and shuts it when the switch is somebody else's. A nil gate lets everybody pass.
type gate struct {
	mu   sync.Mutex
	shut bool
}

// pass waits until it is the caller's turn; leave ends it. It is false when nothing
// may be changed any more; then there is nothing to leave.
func (g *gate) pass() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	if g.shut {
		g.mu.Unlock()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g != nil {
		g.mu.Unlock()
	}
}

// close lets nobody pass any more. The caller has passed it.
func (g *gate) close() {
	g.shut = true
	g.mu.Unlock()
}
