package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Another process takes the port over with its receiving sockets, and with the datagrams that
// wait in them. It opens its own sending sockets. Its flows then have other source ports, which
// does not matter to other Nodes.
//
// A process without privilege (Config.Given) may not open a raw socket for GRE, nor request a
// large buffer for any. So it gets all sockets:
//
//  1. the receiving ones, the Node's own first;
//  2. the sending ones, of the Node's own address. They have another UDP port. With GRE, which
//     has one receiving socket per address, they follow the first one.
//  3. the last two of them: the one whose datagrams are fragmented, and the one that asks for
//     routes;
//  4. the link of the program that takes packets out of the tunnel, if there is one.

// Descriptors are the receiving sockets, the Node's own first, and the sending ones if the port
// is given.
func (p *Port) Descriptors() (fds []int) {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	for _, r := range p.rxs {
		fds = append(fds, r.fd)
	}
	if p.config.Given && len(fds) > 0 {
		fds = append(append(fds, p.senders...), p.noDF, p.asker)
		if with, is := p.hook.link.(interface{ FD() int }); is {
			fds = append(fds, with.FD())
		}
	}
	return fds
}

// Rest makes Receive return only datagrams that were already read.
func (p *Port) Rest() {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	p.rests = true
}

// Adopt opens the port with the sockets of another one. It owns them from then on, also after an
// error.
func Adopt(c Config, fds []int) (*Port, error) {
	c.inherited = &fds
	p, err := Open(c)
	if err != nil {
		_ = ports.CloseAll(fds)
		return nil, fmt.Errorf("taken over: %w", err)
	}
	return p, nil
}

// inherit takes sockets. The Node's own must be the first. After an error, the port has the valid
// receiving sockets, and all others are closed.
func (p *Port) inherit(from *[]int) error {
	fds := *from
	*from = nil
	if p.config.Given {
		var err error
		if fds, err = p.inheritHook(fds); err != nil {
			_ = ports.CloseAll(fds)
			return err
		}
	}
	n := len(fds)
	if p.config.Given {
		n = p.receiving(fds)
	}
	for i, fd := range fds[:n] {
		at, err := boundTo(fd)
		if port := p.config.Kind.Port(); err == nil && (port != 0 && at.Port() != port || i == 0 && at.Addr() != p.config.Local) {
			err = fmt.Errorf("it receives at %v", at)
		}
		if err != nil {
			_ = ports.CloseAll(fds[i:])
			return fmt.Errorf("underlay: receiving socket %d: %w", i+1, err)
		}
		if err = p.addReceiver(fd, at.Addr()); err != nil {
			_ = ports.CloseAll(fds[i+1:])
			return fmt.Errorf("underlay: receiving socket %d: %w", i+1, err)
		}
	}
	if len(p.rxs) == 0 {
		return errors.New("underlay: there is no receiving socket")
	}
	if p.config.Given {
		return p.inheritToSend(fds[n:])
	}
	return nil
}

// receiving is how many of a given port's sockets receive: those before the first sending one.
func (p *Port) receiving(fds []int) int {
	port := p.config.Kind.Port()
	for i, fd := range fds {
		at, err := boundTo(fd)
		if err == nil && i > 0 && (port != 0 && at.Port() != port || port == 0 && at.Addr() == p.config.Local) {
			return i
		}
	}
	return len(fds)
}

// inheritToSend takes the sending sockets. After an error they are closed.
func (p *Port) inheritToSend(fds []int) error {
	const others = 2 // noDF and asker
	n := len(fds) - others
	var err error
	if n < 1 {
		err = fmt.Errorf("%d sockets, want %d or more", len(fds), others+1)
	}
	for _, fd := range fds {
		at, notBound := boundTo(fd)
		if notBound == nil && at.Addr() != p.config.Local {
			notBound = fmt.Errorf("one sends from %v", at)
		}
		err = errors.Join(err, notBound)
	}
	if err != nil {
		_ = ports.CloseAll(fds)
		return fmt.Errorf("underlay: to send by: %w", err)
	}
	p.senders, p.noDF, p.asker = fds[:n:n], fds[n], fds[n+1]
	return nil
}

// boundTo is the address to which a socket is bound.
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
