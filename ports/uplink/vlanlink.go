package uplink

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/vishvananda/netlink"
)

// A VLAN or a bond is a link above cards. A card's own program would see frames of all
// VLANs, with a tag or, where the card takes it off, without. A bond's would be run by
// its members, whose frames no socket of the bond gets. So the program runs on the link
// itself, in generic mode. The kernel has taken the tag off there, and knows the bond as
// the link that the packet came by. What is sent by the link's socket gets its tag, and
// its member of the bond, from the link's own driver.

// options are how AF_XDP drives the link: mode and polling; or why it cannot.
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

// oneQueue says whether the cards below a link have one receive queue each: frames of
// others would come by the sockets only.
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

// lower are the links right below a VLAN or a bond.
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
