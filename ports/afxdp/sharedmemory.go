package afxdp

import (
	"errors"
	"sync"
)

// Memory is the UMEMs of ports that come and go. A UMEM cannot grow, because the kernel accepts
// it as it is. So if no UMEM has room for a new port, another one is made, and stays for later
// ports. A frame moves between ports of one UMEM without a copy. Between ports of two UMEMs it is
// copied.
type Memory struct {
	ring  int // slots of each port's rings
	first int // number of ports for which the first UMEM has room

	mu    sync.Mutex // held while a port opens
	umems []*UMEM
}

// leastPorts is the least number of ports for which a UMEM has room.
const leastPorts = 4

// NewMemory is memory for ports with ring slots in each ring, at first for a number of ports.
// Nothing is allocated before the first port opens.
func NewMemory(ring, ports int) *Memory {
	return &Memory{ring: ring, first: max(ports, leastPorts)}
}

// framesPerPort is how many frames a port needs: a full fill ring and as many on their way.
func (m *Memory) framesPerPort() int { return 2 * m.ring }

// Open makes a port, as Open does with a UMEM; o.Ring is the memory's.
func (m *Memory) Open(o Options) (*Port, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.Ring = m.ring
	for _, u := range m.umems {
		if m.hasRoom(u) {
			return Open(u, o)
		}
	}
	ports := leastPorts
	if len(m.umems) == 0 {
		ports = m.first
	}
	u, err := NewUMEM(m.framesPerPort() * (ports + 1)) // one port's frames for those at the workers
	if err != nil {
		return nil, err
	}
	p, err := Open(u, o)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	m.umems = append(m.umems, u)
	return p, nil
}

// hasRoom says whether a UMEM can take one more port.
func (m *Memory) hasRoom(u *UMEM) bool {
	return !u.alone && !u.isShared() && (u.Ports()+2)*m.framesPerPort() <= u.Frames()
}

// Close frees the memory. All ports must be closed, and their frames released.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, u := range m.umems {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}
