package uplink

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/vishvananda/netlink"
)

// A VLAN or a bond is a link above cards. A card's own program would see frames of all VLANs,
// with a tag or, if the card removes it, without. A bond's program would run on its members,
// whose frames no socket of the bond gets. So the program runs on the link itself, in generic
// mode. There the kernel has removed the tag, and regards the bond as the packet's link. Packets
// that the link's socket sends get their tag, and their member of the bond, from the link's
// driver.

// options is how AF_XDP drives the link: mode and polling. The error is why it cannot.
func (c *Config) options() (o afxdp.Options, err error) {
	link, err := netlink.LinkByName(c.Link)
	if err != nil {
		return o, err
	}
	if link.Attrs().MasterIndex != 0 {
		return o, errors.New("it belongs to a bond or bridge, which has the Node's address: driver kernel goes through that")
	}
	switch kind := link.Type(); kind {
	case "device", "veth":
		o.Mode, o.BusyPoll = c.Mode, c.BusyPoll
	case "vlan", "bond":
		o.Mode, err = afxdp.Generic, oneQueue(link)
	default:
		err = fmt.Errorf("it is a %s, and AF_XDP drives cards, VLANs and bonds: driver kernel goes through it", kind)
	}
	return o, err
}

// oneQueue returns an error if a card below a link has several receive queues. Frames of the
// other queues would only reach the sockets.
func oneQueue(link netlink.Link) error {
	below, err := lower(link)
	if err != nil {
		return err
	}
	for _, l := range below {
		if kind := l.Type(); kind == "vlan" || kind == "bond" {
			err = oneQueue(l)
		} else {
			err = oneQueueOf(l.Attrs().Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func oneQueueOf(card string) error {
	n, err := ports.RxQueues(card)
	if err == nil && n > 1 {
		err = fmt.Errorf("%s below it has %d receive queues, and a port serves one: ethtool -L %s combined 1 (or rx 1)", card, n, card)
	}
	return err
}

// lower are the links directly below a VLAN or a bond.
func lower(link netlink.Link) (below []netlink.Link, err error) {
	if link.Type() == "vlan" {
		l, err := netlink.LinkByIndex(link.Attrs().ParentIndex)
		return []netlink.Link{l}, err
	}
	all, err := netlink.LinkList()
	for _, l := range all {
		if l.Attrs().MasterIndex == link.Attrs().Index {
			below = append(below, l)
		}
	}
	return below, err
}
