package tap

import (
	"fmt"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A device lives as long as any process has its descriptor open. So it goes on in another
// process that has a copy, with its addresses and routes. What the host has sent and
// nobody has read is kept.

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

// Rest ends receiving: nothing is read before it is handed out.
func (p *Port) Rest() {
	p.rx.Lock()
	defer p.rx.Unlock()
	p.rests = true
}

// Adopt makes the port of another one's descriptors, which are its own from then on,
// also after an error. The device stays as it is: it must have the options' name,
// address and MTU. One that has an owner stays when the port is closed, until Keep
// says otherwise.
func Adopt(o Options, fds []int) (*Port, error) {
	if len(fds) != 1 && !(o.Given && len(fds) == 2) {
		closeAll(fds)
		return nil, fmt.Errorf("tap: %s: taken over: %d descriptors, want 1, or 2 with the link of a program", o.Name, len(fds))
	}
	if len(fds) == 2 {
		var err error
		if o.hook, err = link.NewFromFD(fds[1]); err != nil { // which has closed it
			closeAll(fds[:1])
			return nil, fmt.Errorf("tap: %s: taken over: the second descriptor is no link of a program: %w", o.Name, err)
		}
	}
	return over(fds[0], o, (*Port).adopt)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
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
	p.keep = true // it is the other's until this one goes on
	return p.watch()
}
