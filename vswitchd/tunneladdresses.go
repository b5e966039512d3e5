package vswitchd

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/switchd"
)

// A tunnel port without options:local_ip receives at every address of the Node, as with Open
// vSwitch. Antrea's agent needs that: other Nodes send to the address of an Egress, and an entry
// finds the Egress by tun_dst. A socket of the switch has one address. So the process opens sockets
// when addresses of the Node come and go.

// maxTunnelAddresses is the largest number of sockets. A Node with a link for the addresses of all
// Services (kube-ipvs0) has thousands of addresses.
const maxTunnelAddresses = 64

// tunnelPort is a tunnel of the bridge.
type tunnelPort struct {
	spec     *door.TunnelSpec
	anywhere bool // the row has no options:local_ip
}

// receivers are the addresses at which a switch's tunnels receive, in addition to their own.
type receivers struct {
	client *door.Client
	log    *slog.Logger
	sent   map[uint32][]netip.Addr // the addresses that were sent to the switch, by a tunnel's port number
}

// update makes tunnels receive at the present addresses of the Node.
func (r *receivers) update(tunnels map[uint32]tunnelPort) {
	for no, t := range tunnels {
		if err := r.updateTunnel(no, t, tunnels); err != nil {
			delete(r.sent, no) // so the next update tries again
			r.log.Warn("a tunnel does not receive at every address of the Node", "type", t.spec.Kind, "error", err)
		}
	}
	maps.DeleteFunc(r.sent, func(no uint32, _ []netip.Addr) bool { _, is := tunnels[no]; return !is })
}

// updateTunnel sends the addresses of one tunnel to the switch if they have changed. It leaves out
// the addresses of other tunnels of its kind.
func (r *receivers) updateTunnel(no uint32, t tunnelPort, all map[uint32]tunnelPort) error {
	here, left := []netip.Addr{}, 0
	if t.anywhere {
		links, err := net.InterfaceAddrs()
		if err != nil {
			return err
		}
		here, left = reachableAddresses(t.spec.Local, links)
	}
	for other, o := range all {
		here = slices.DeleteFunc(here, func(a netip.Addr) bool { return other != no && o.spec.Kind == t.spec.Kind && a == o.spec.Local })
	}
	if had, told := r.sent[no]; told && slices.Equal(here, had) {
		return nil
	}
	if left > 0 {
		r.log.Warn("a tunnel does not receive at some addresses of the Node: set options:local_ip, or remove addresses",
			"type", t.spec.Kind, "receives at", len(here), "not at", left)
	}
	if r.sent == nil {
		r.sent = map[uint32][]netip.Addr{}
	}
	r.sent[no] = here
	return switchd.SetEgresses(r.client, t.spec.Kind, &door.TunnelEgresses{Port: no, Here: here})
}

// reachableAddresses are the addresses of links at which other Nodes may reach a tunnel: those of
// the family of its own address, sorted. left counts the addresses beyond maxTunnelAddresses.
func reachableAddresses(own netip.Addr, links []net.Addr) (here []netip.Addr, left int) {
	here = []netip.Addr{}
	for _, l := range links {
		prefix, err := netip.ParsePrefix(l.String())
		a := prefix.Addr()
		if err == nil && a.Is4() == own.Is4() && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			here = append(here, a)
		}
	}
	slices.SortFunc(here, netip.Addr.Compare)
	here = slices.Compact(here)
	most := min(len(here), maxTunnelAddresses)
	return here[:most], len(here) - most
}
