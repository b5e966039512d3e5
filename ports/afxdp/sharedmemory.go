package afxdp

import (
	"errors"
	"sync"
)

// Memory is what ports that come and go receive into and send from. The kernel
// takes a UMEM as it is: it cannot grow. So a further one is made when a port
// comes for which the others have no room, and stays for ports to come. A frame
// goes from port to port of one UMEM without a copy, and is copied between
// ports of two.
type Memory struct {
	ring  int // slots of each port's rings
	first int // ports that the first UMEM has room for

	mu    sync.Mutex // held while a port opens
	umems []*UMEM
}

// leastPorts is how many ports a UMEM has room for at least.
const leastPorts = 4

// NewMemory is memory for ports with so many slots in each ring, to begin with
// for so many ports. Nothing is taken before the first port opens.
func NewMemory(ring, ports int) *Memory {
	return &Memory{ring: ring, first: max(ports, leastPorts)}
}

// framesPerPort is how many frames a port is counted with: a full fill ring and
// as many on their way.
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
	u, err := NewUMEM(m.framesPerPort() * (ports + 1)) // one port's for what is at the workers
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

// Close gives the memory back. All ports must be closed, and their frames
// released.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, u := range m.umems {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}
