package afxdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A process without privilege opens no AF_XDP socket and attaches no program. So another
// one opens the port, and gives it away with all that it has (adopt.go):
//
//  1. The port has memory of its own. Sockets that share memory are bound by the process
//     that has the others, which has no right to. A frame that leaves by another port is
//     copied for that, at a small part of what the kernel takes to send it.
//  2. The program is attached by a bpf_link, which is given. So the port takes frames as
//     long as the process that has it lives, and the program goes with the last descriptor.
//  3. A port with a filter also gives the map of the addresses, which SetLocal writes.
//     Program and map of sockets stay as they are.
//  4. The kernel takes the memory as locked by the process that opens the port.

// framesAlone is how many frames memory of one port has: full rings both ways, and what is
// at workers.
func framesAlone(ring int) int { return 2*ring + ring/2 }

// OpenToGive opens a port with memory of its own, for another process to Adopt as
// Attached. It needs the same as Open, and moves no frame here: what comes waits in the
// ring. Close leaves the port to the other process; without one the port ends.
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

// abandon unmaps memory whose frames nobody here has had. The caller holds u.open.
func (u *UMEM) abandon() error {
	if u.closed {
		return nil
	}
	u.closed = true
	return errors.Join(unix.Munmap(u.memory), unix.Close(u.fd))
}

// Sweep gives back memory of given ports that are closed, as soon as no worker has a frame
// of it.
func (m *Memory) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.umems[:0]
	for _, u := range m.umems {
		if !u.alone || u.Ports() > 0 || u.Close() != nil { // a frame is in use: the next Sweep asks again
			left = append(left, u)
		}
	}
	clear(m.umems[len(left):])
	m.umems = left
}

// takeLocals takes the map of addresses of a given port.
func (g *given) takeLocals(fd int) error {
	m, err := ebpf.NewMapFromFD(fd) // which closes it after an error
	if err != nil {
		return fmt.Errorf("map of addresses: %w", err)
	}
	g.locals = m
	if m.Type() != ebpf.Hash || m.KeySize() != 16 || m.ValueSize() != 1 {
		return fmt.Errorf("map of addresses: it is %v", m)
	}
	return nil
}
