package underlay

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// Other Nodes send what is to leave the cluster by an Egress to the Egress'
// address itself: entries find the Egress by tun_dst.

// receiver is a socket of one address of the Node. It is under rxMu.
type receiver struct {
	fd   int
	at   netip.Addr
	seen uint32 // how many of the kernel's drops are counted already
}

// SetEgresses replaces the addresses of Egresses. At those that this Node holds, frames
// of known Nodes are taken, as at its own address. To those of other Nodes, frames may be
// sent. An address need not be on the Node yet. What cannot be opened is told in the
// error; the rest is as it is to be.
func (p *Port) SetEgresses(here, far []netip.Addr) error {
	p.replaceSet(&p.far, far)
	defer p.replaceSet(&p.here, here)
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	if p.epoll < 0 {
		return nil
	}
	wanted := *setOf(append([]netip.Addr{p.config.Local}, here...))
	missing := maps.Clone(wanted)
	p.countDrops()
	p.ready = readySockets{}
	p.rxs = slices.DeleteFunc(p.rxs, func(r *receiver) bool {
		_, keep := wanted[r.at]
		delete(missing, r.at)
		if !keep {
			unix.Close(r.fd) // which takes it out of the epoll set
		}
		return !keep
	})
	var errs []error
	for a := range missing {
		errs = append(errs, p.listen(a))
	}
	return errors.Join(errs...)
}

// ErrNotGiven is why SetEgresses of a port that was given does not receive at an address.
var ErrNotGiven = errors.New("the process that gave the port has given no socket")

// OpenReceivers opens the first sockets of Egresses' addresses, for a port that another
// process has (Config.Given). It fails for those at which anybody receives, such as that
// port; all others are opened.
func OpenReceivers(kind tunnel.Kind, here []netip.Addr) (fds []int, err error) {
	c := Config{Kind: kind}
	for _, a := range here {
		fd, one := openReceiver(&c, a, false)
		if one != nil {
			err = errors.Join(err, notReceiving(kind, a, one))
			continue
		}
		fds = append(fds, fd)
	}
	return fds, err
}

// AddReceivers adds sockets that OpenReceivers has opened, for SetEgresses to find. They are the
// port's from then on, also after an error. An address has one: a second is closed.
func (p *Port) AddReceivers(fds []int) error {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	var errs []error
	for _, fd := range fds {
		at, err := boundTo(fd)
		if port := p.config.Kind.Port(); err == nil && port != 0 && at.Port() != port {
			err = fmt.Errorf("underlay: it receives at %v", at)
		}
		has := slices.ContainsFunc(p.rxs, func(r *receiver) bool { return r.at == at.Addr() })
		if err != nil || has || p.epoll < 0 {
			errs = append(errs, err, unix.Close(fd))
			continue
		}
		join(fd, !p.config.Apart)
		errs = append(errs, p.addReceiver(fd, at.Addr()))
	}
	return errors.Join(errs...)
}

// listen opens the first socket of one address. It fails when anybody else receives
// there.
func (p *Port) listen(a netip.Addr) error {
	if p.config.Given && p.config.inherited != nil {
		return notReceiving(p.config.Kind, a, ErrNotGiven)
	}
	fd, err := openReceiver(&p.config, a, false)
	if err == nil {
		err = p.addReceiver(fd, a)
	}
	return notReceiving(p.config.Kind, a, err)
}

// notReceiving says where it is that nothing is received; nil without an error.
func notReceiving(kind tunnel.Kind, a netip.Addr, err error) error {
	if err != nil {
		return fmt.Errorf("underlay: receive %v on %v: %w", kind, a, err)
	}
	return nil
}

// addReceiver has the port receive by a socket, which is closed after an error.
func (p *Port) addReceiver(fd int, at netip.Addr) error {
	err := p.watch(fd)
	if err == nil && at.Is6() && p.config.Kind.Port() != 0 {
		err = acceptUnsummed(fd)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	p.rxs = append(p.rxs, &receiver{fd: fd, at: at})
	return nil
}

// watch has the port's descriptor tell of a socket.
func (p *Port) watch(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event)
}

// countDrops counts what the kernel dropped at the sockets. Callers hold rxMu.
func (p *Port) countDrops() {
	for _, r := range p.rxs {
		p.count.kernelDrops(r)
	}
}
