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

// removeInside removes a sandbox's interface, and so the Node's end, without the agent. The
// agent's record keeps its address until an agent finds the link gone, at its start or when
// no address is left. If the interface or the sandbox is gone, that is not an error. An
// interface that is not a veth stays.
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
