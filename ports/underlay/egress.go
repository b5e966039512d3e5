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

// Other Nodes send packets that leave the cluster by an Egress to the Egress' address itself.
// Entries recognise the Egress by tun_dst.

// receiver is a socket of one address of the Node. It is under rxMu.
type receiver struct {
	fd   int
	at   netip.Addr
	seen uint32 // the kernel's drops that are already counted
}

// SetEgresses replaces the addresses of Egresses. At those that this Node holds (here), the port
// receives frames of known Nodes, as at its own address. It may send frames to those of other
// Nodes (far). An address need not be on the Node yet. The error names each address that cannot
// be opened; all others are set.
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
			unix.Close(r.fd) // closing removes it from the epoll set
		}
		return !keep
	})
	var errs []error
	for a := range missing {
		errs = append(errs, p.listen(a))
	}
	return errors.Join(errs...)
}

// ErrNotGiven is why SetEgresses of a given port does not receive at an address.
var ErrNotGiven = errors.New("the process that gave the port has given no socket")

// OpenReceivers opens the first sockets of Egresses' addresses, for a port that another process
// has (Config.Given). It fails for addresses where any socket receives, such as that port's. It
// opens all others.
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

// AddReceivers adds sockets of OpenReceivers, for SetEgresses to find. The port owns them from
// then on, also after an error. An address has one socket; a second one is closed.
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

// listen opens the first socket of one address. It fails if any other socket receives there.
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

// notReceiving adds the address to an error; nil without an error.
func notReceiving(kind tunnel.Kind, a netip.Addr, err error) error {
	if err != nil {
		return fmt.Errorf("underlay: receive %v on %v: %w", kind, a, err)
	}
	return nil
}

// addReceiver makes the port receive by a socket. After an error, the socket is closed.
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

// watch adds a socket to the port's epoll descriptor.
func (p *Port) watch(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event)
}

// countDrops counts the kernel's drops at the sockets. The caller holds rxMu.
func (p *Port) countDrops() {
	for _, r := range p.rxs {
		p.count.kernelDrops(r)
	}
}
