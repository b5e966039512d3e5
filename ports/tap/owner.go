package tap

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A device with an owner outlives the process that made it, with its addresses and routes. A
// process with the same owner opens it again under its name. Destroying a device takes the kernel
// tens of milliseconds, and making one with its routes some more. Without an owner, packets would
// wait for both after a process is killed. Between the two processes the device has no carrier:
// packets that the host sends to it are dropped, and `ip link` shows why.
//
// The owner is the device's alias (IFLA_IFALIAS), so the owner needs no other record.

// own makes a device outlive its descriptor. It sets the alias first, so that no device is left
// without an owner.
func (p *Port) own(device netlink.Link, owner string) error {
	if device.Attrs().Alias != owner {
		if err := p.links.LinkSetAlias(device, owner); err != nil {
			return fmt.Errorf("alias: %w", err)
		}
	}
	return p.persist(true)
}

// persist says whether the device stays when its descriptor is closed.
func (p *Port) persist(stay bool) error {
	on := 0
	if stay {
		on = 1
	}
	if err := unix.IoctlSetInt(p.fd, unix.TUNSETPERSIST, on); err != nil {
		return fmt.Errorf("TUNSETPERSIST: %w", err)
	}
	return nil
}

// Keep says whether Close leaves a device with an owner to another process. An opened port
// deletes its device by default, and an adopted one leaves it.
func (p *Port) Keep(keep bool) {
	p.tx.Lock()
	defer p.tx.Unlock()
	p.keep = keep
}

// Found says whether Open found the device from an earlier process of its owner.
func (p *Port) Found() bool { return p.found }

// waits says whether a device of this name and owner exists.
func waits(o Options) (bool, error) {
	if o.Owner == "" {
		return false, nil
	}
	device, err := netlink.LinkByName(o.Name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	return err == nil && isOwned(device, o.Owner), err
}

func isOwned(device netlink.Link, owner string) bool {
	return device.Type() == "tuntap" && device.Attrs().Alias == owner
}

// Sweep deletes an owner's devices in the calling thread's network namespace, except those to
// keep. It returns the names of the deleted ones.
func Sweep(owner string, keep func(name string) bool) (deleted []string, err error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	var errs []error
	for _, device := range all {
		name := device.Attrs().Name
		if !isOwned(device, owner) || keep(name) {
			continue
		}
		if err := netlink.LinkDel(device); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		deleted = append(deleted, name)
	}
	return deleted, errors.Join(errs...)
}
