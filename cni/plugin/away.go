package plugin

import (
	"errors"
	"io/fs"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// removeInside takes a sandbox's interface away without the agent, and with it
// the Node's end. The agent's record of it stays, and so nobody gets its address
// until an agent finds the link gone: at its start, or when no address is left. An
// interface or a sandbox that is gone is no error, and an interface that is no veth
// is not ours.
func removeInside(sandbox, ifname string) error {
	if sandbox == "" {
		return nil
	}
	ns, err := netns.GetFromPath(sandbox)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return cni.Errorf(types.ErrInvalidNetNS, "the sandbox "+sandbox, err)
	}
	defer ns.Close()
	links, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return cni.Errorf(types.ErrInvalidNetNS, "the sandbox "+sandbox, err)
	}
	defer links.Close()
	link, err := links.LinkByName(ifname)
	if errors.As(err, new(netlink.LinkNotFoundError)) || err == nil && link.Type() != "veth" {
		return nil
	}
	if err == nil {
		err = links.LinkDel(link)
	}
	if err != nil {
		return cni.Errorf(types.ErrIOFailure, "the interface "+ifname+" of "+sandbox, err)
	}
	return nil
}
