package tap

import (
	"fmt"

	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A device exists while any process has its descriptor open. So another process with a copy can
// take it over, with its addresses and routes. Packets that the host has sent and no process has
// read are kept.

// Descriptors is the device's descriptor, and the link of its program if the port is given
// and has one.
func (p *Port) Descriptors() []int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed {
		return nil
	}
	fds := []int{p.fd}
	if with, is := p.hook.(interface{ FD() int }); is && p.given {
		fds = append(fds, with.FD())
	}
	return fds
}

// Rest ends receiving. This port never holds frames that it has read but not returned.
func (p *Port) Rest() {
	p.rx.Lock()
	defer p.rx.Unlock()
	p.rests = true
}

// Adopt makes a port from another port's descriptors. It owns them from then on, also after an
// error. The device is not changed: it must have the options' name, address and MTU. A device
// with an owner stays when the port is closed, until Keep changes that.
func Adopt(o Options, fds []int) (*Port, error) {
	if len(fds) != 1 && !(o.Given && len(fds) == 2) {
		ports.CloseAll(fds)
		return nil, fmt.Errorf("tap: %s: taken over: %d descriptors, want 1, or 2 with the link of a program", o.Name, len(fds))
	}
	if len(fds) == 2 {
		var err error
		if o.hook, err = link.NewFromFD(fds[1]); err != nil { // NewFromFD has closed it
			ports.CloseAll(fds[:1])
			return nil, fmt.Errorf("tap: %s: taken over: the second descriptor is no link of a program: %w", o.Name, err)
		}
	}
	return over(fds[0], o, (*Port).adopt)
}

// adopt checks that the descriptor's device is the one that the options describe.
func (p *Port) adopt(o Options) error {
	request, err := unix.NewIfreq(p.name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(p.fd, unix.TUNGETIFF, request); err != nil {
		return fmt.Errorf("taken over: no device: %w", err)
	}
	if request.Name() != p.name {
		return fmt.Errorf("taken over: the device is %s", request.Name())
	}
	device, err := p.find()
	if err != nil {
		return err
	}
	if a := device.Attrs(); a.MTU != p.info.MTU || o.MAC != [6]byte{} && string(a.HardwareAddr) != string(o.MAC[:]) {
		return fmt.Errorf("taken over: the device has the address %s and MTU %d", a.HardwareAddr, a.MTU)
	}
	p.keep = true // it belongs to the other process until this one takes over
	return p.watch()
}
