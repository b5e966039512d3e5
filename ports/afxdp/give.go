package afxdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A process without privilege cannot open an AF_XDP socket or attach a program. So another
// process opens the port, and gives it away with everything that it has (adopt.go):
//
//  1. The port has its own memory. Sockets that share memory must be bound by the process that
//     has the other sockets, which has no privilege. So a frame that leaves by another port is
//     copied, at a small part of the kernel's cost of sending it.
//  2. The program is attached by a bpf_link, which is given. So the port takes frames as long as
//     the receiving process lives, and the program goes with the last descriptor.
//  3. A port with a filter also gives the map of the addresses, which SetLocal writes. The
//     program and the map of sockets stay as they are.
//  4. The kernel charges the locked memory to the process that opens the port.

// framesAlone is how many frames the memory of one port has: full rings both ways, and frames at
// workers.
func framesAlone(ring int) int { return 2*ring + ring/2 }

// OpenToGive opens a port with its own memory, for another process to Adopt as Attached. It needs
// the same capabilities as Open. The port moves no frame here: received frames wait in the ring.
// Close leaves the port to the other process; without one the port ends.
func (m *Memory) OpenToGive(o Options) (*Port, error) {
	o.Ring = m.ring
	u, err := NewUMEM(framesAlone(o.Ring))
	if err != nil {
		return nil, err
	}
	p, err := Open(u, o)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	p.Rest()
	p.given, u.idle = true, true
	return p, nil
}

// abandon unmaps memory whose frames this process has never used. The caller holds u.open.
func (u *UMEM) abandon() error {
	if u.closed {
		return nil
	}
	u.closed = true
	return errors.Join(unix.Munmap(u.memory), unix.Close(u.fd))
}

// Sweep frees the memory of closed given ports, as soon as no worker has a frame of it.
func (m *Memory) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.umems[:0]
	for _, u := range m.umems {
		if !u.alone || u.Ports() > 0 || u.Close() != nil { // if a frame is in use, the next Sweep tries again
			left = append(left, u)
		}
	}
	clear(m.umems[len(left):])
	m.umems = left
}

// takeLocals takes ownership of the map of addresses of a given port.
func (g *given) takeLocals(fd int) error {
	m, err := ebpf.NewMapFromFD(fd) // closes fd if it fails
	if err != nil {
		return fmt.Errorf("map of addresses: %w", err)
	}
	g.locals = m
	if m.Type() != ebpf.Hash || m.KeySize() != 16 || m.ValueSize() != 1 {
		return fmt.Errorf("map of addresses: it is %v", m)
	}
	return nil
}
