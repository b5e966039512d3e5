package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The port goes on in another process with its receiving sockets, and with the
// datagrams that wait in them. Sockets to send by are the other process's own: its
// flows have other source ports from then on, which no Node minds.

// Descriptors are the receiving sockets, the Node's own first.
func (p *Port) Descriptors() (fds []int) {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	for _, r := range p.rxs {
		fds = append(fds, r.fd)
	}
	return fds
}

// Rest has Receive hand out only what was read already.
func (p *Port) Rest() {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	p.rests = true
}

// Adopt opens the port with the receiving sockets of another one, which are its own
// from then on, also after an error.
func Adopt(c Config, fds []int) (*Port, error) {
	c.inherited = &fds
	p, err := Open(c)
	if err != nil {
		_ = closeAll(fds)
		return nil, fmt.Errorf("taken over: %w", err)
	}
	return p, nil
}

// inherit takes receiving sockets. The Node's own has to be the first.
func (p *Port) inherit(from *[]int) error {
	fds := *from
	*from = nil
	for i, fd := range fds {
		at, err := boundTo(fd)
		if port := p.config.Kind.Port(); err == nil && (port != 0 && at.Port() != port || i == 0 && at.Addr() != p.config.Local) {
			err = fmt.Errorf("it receives at %v", at)
		}
		if err != nil {
			_ = closeAll(fds[i:])
			return fmt.Errorf("underlay: receiving socket %d: %w", i+1, err)
		}
		if err = p.add(fd, at.Addr()); err != nil {
			_ = closeAll(fds[i+1:])
			return fmt.Errorf("underlay: receiving socket %d: %w", i+1, err)
		}
	}
	if len(p.rxs) == 0 {
		return errors.New("underlay: there is no receiving socket")
	}
	return nil
}

// boundTo is where a socket receives.
func boundTo(fd int) (netip.AddrPort, error) {
	at, err := unix.Getsockname(fd)
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(at.Addr), uint16(at.Port)), nil
	}
	return netip.AddrPort{}, errors.Join(errors.New("it is no socket of IP"), err)
}
