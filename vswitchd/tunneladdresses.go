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
// vSwitch. Antrea's agent needs that: other Nodes send to the address of an Egress, and an
// entry finds the Egress by tun_dst. A socket of the switch has one address, so the process
// follows the addresses of the Node.

// maxTunnelAddresses bounds the sockets. A Node with a link for all Services' addresses
// (kube-ipvs0) has thousands.
const maxTunnelAddresses = 64

// tunnelPort is a tunnel of the bridge.
type tunnelPort struct {
	spec     *door.TunnelSpec
	anywhere bool // the row names no address
}

// receivers are the addresses at which a switch's tunnels receive, apart from their own.
type receivers struct {
	client *door.Client
	log    *slog.Logger
	told   map[uint32][]netip.Addr // the addresses that the switch has, by the number of a tunnel
}

// receive has tunnels receive at the addresses that the Node has now.
func (r *receivers) receive(tunnels map[uint32]tunnelPort) {
	for no, t := range tunnels {
		if err := r.receiveAt(no, t, tunnels); err != nil {
			delete(r.told, no) // tried again at the next look
			r.log.Warn("a tunnel does not receive at every address of the Node", "type", t.spec.Kind, "error", err)
		}
	}
	maps.DeleteFunc(r.told, func(no uint32, _ []netip.Addr) bool { _, is := tunnels[no]; return !is })
}

// receiveAt has one tunnel receive where it should. It does not at the address of another tunnel
// of its kind.
func (r *receivers) receiveAt(no uint32, t tunnelPort, all map[uint32]tunnelPort) error {
	here, left := []netip.Addr{}, 0
	if t.anywhere {
		links, err := net.InterfaceAddrs()
		if err != nil {
			return err
		}
		here, left = reachable(t.spec.Local, links)
	}
	for other, o := range all {
		here = slices.DeleteFunc(here, func(a netip.Addr) bool { return other != no && o.spec.Kind == t.spec.Kind && a == o.spec.Local })
	}
	if had, told := r.told[no]; told && slices.Equal(here, had) {
		return nil
	}
	if left > 0 {
		r.log.Warn("a tunnel does not receive at some addresses of the Node: set options:local_ip, or remove addresses",
			"type", t.spec.Kind, "receives at", len(here), "not at", left)
	}
	if r.told == nil {
		r.told = map[uint32][]netip.Addr{}
	}
	r.told[no] = here
	return switchd.SetEgresses(r.client, t.spec.Kind, &door.TunnelEgresses{Port: no, Here: here})
}

// reachable are the addresses of links at which other Nodes may reach a tunnel, sorted: those
// of the family of its own. left counts those beyond maxTunnelAddresses.
func reachable(own netip.Addr, links []net.Addr) (here []netip.Addr, left int) {
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
