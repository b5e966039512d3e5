package afpacket

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Another process takes a port over with its socket, and the program stays at the link.
//
//  1. No frame is dropped or seen twice, because waiting frames wait in the socket.
//  2. The programs are the other process's own, because they refer to its memory. It replaces the
//     earlier ones after the predecessor has stopped moving packets and has withdrawn its offload
//     entries.
//  3. Then each of the two filters passes every frame to the socket, and ingress drops it.

// Descriptors are the socket.
func (p *Port) Descriptors() []int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed {
		return nil
	}
	return []int{p.fd}
}

// Rest ends receiving. This port never holds frames that it has read but not returned.
func (p *Port) Rest() {
	p.rx.Lock()
	defer p.rx.Unlock()
	p.rests = true
	p.ingress.hook.keepProgram()
}

// Adopt makes a port of an interface from another port's descriptors. It owns them from then on,
// also after an error. The caller must call BeginTraffic before it uses the port.
func Adopt(o Options, fds []int) (*Port, error) {
	p, err := adopt(o, fds)
	if err != nil {
		return nil, fmt.Errorf("afpacket: %s: taken over: %w", o.Interface, err)
	}
	return p, nil
}

func adopt(o Options, fds []int) (*Port, error) {
	if len(fds) != 1 {
		ports.CloseAll(fds)
		return nil, fmt.Errorf("%d descriptors, want a socket", len(fds))
	}
	p, index, err := prepare(&o)
	if err == nil {
		err = receivesFrom(fds[0], index)
	}
	var h hook
	if err == nil {
		h, err = adoptHook(index, o)
	}
	if err != nil {
		ports.CloseAll(fds)
		if p != nil && p.link != nil {
			p.link.Close()
		}
		return nil, err
	}
	p.fd, p.ring, p.ingress, p.programs = fds[0], linger(fds[0]), &ingress{hook: h}, o.Offload
	return p, nil
}

// receivesFrom returns an error if a descriptor is not a packet socket of an interface.
func receivesFrom(fd, index int) error {
	at, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	ll, is := at.(*unix.SockaddrLinklayer)
	switch {
	case !is:
		return errors.New("it is no packet socket")
	case ll.Ifindex != index:
		return errors.New("packet socket: it is of another interface")
	}
	return nil
}

// BeginTraffic replaces the predecessor's programs by this process's own. If another process
// keeps the programs (Options.Attached), BeginTraffic does nothing.
func (p *Port) BeginTraffic() error {
	if p.ingress.hook == (attached{}) {
		return nil
	}
	ingressProgram, filter := p.programs.Ingress, p.programs.Filter
	if ingressProgram == nil {
		own, err := dropAll()
		if err != nil {
			return err
		}
		p.ingress.prog, ingressProgram = own, own
	}
	if err := p.setFilter(filter); err != nil {
		return fmt.Errorf("afpacket: %s: filter: %w", p.name, err)
	}
	if err := p.ingress.hook.Update(ingressProgram); err != nil {
		return fmt.Errorf("afpacket: %s: ingress program: %w", p.name, err)
	}
	return nil
}

// Reprogram replaces the programs of the socket and of the ingress of an interface, after a
// switch was killed. Meanwhile frames wait in the socket. It needs the same capabilities as Open.
func Reprogram(name string, socket int, programs Programs) error {
	nic, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	index := nic.Attrs().Index
	if err := receivesFrom(socket, index); err != nil {
		return fmt.Errorf("afpacket: %s: %w", name, err)
	}
	h, err := adoptHook(index, Options{})
	if err != nil {
		return err
	}
	p := &Port{name: name, fd: socket, ingress: &ingress{hook: h}, programs: programs}
	h.keepProgram()
	return errors.Join(p.BeginTraffic(), p.ingress.close())
}

// setFilter sets the filter that decides which frames the socket gets; nil for no filter.
func (p *Port) setFilter(filter *ebpf.Program) error {
	if filter != nil {
		return unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, filter.FD())
	}
	err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil // there was no filter
	}
	return err
}
