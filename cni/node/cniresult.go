package node

import (
	"net"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// result is the runtime's result for an attachment: the Node's end, then the sandbox's end
// with its addresses and routes.
func (n *Node) result(a *attachment) (*types100.Result, error) {
	far, err := n.home.links.LinkByName(a.Link)
	if err != nil {
		return nil, err
	}
	r := &types100.Result{
		CNIVersion: types100.ImplementedSpecVersion,
		Interfaces: []*types100.Interface{
			{Name: a.Link, Mac: far.Attrs().HardwareAddr.String(), Mtu: n.MTU},
			{Name: a.Interface, Mac: a.MAC, Mtu: n.MTU, Sandbox: a.Netns},
		},
	}
	for _, ip := range a.IPs {
		c := &types100.IPConfig{Interface: types100.Int(1), Address: *ipNet(ip)}
		if g, ok := n.gatewayOf(a, ip.Addr()); ok {
			c.Gateway = net.IP(g.AsSlice())
		}
		r.IPs = append(r.IPs, c)
	}
	for _, w := range a.routes(n.gatewaysOf(a)) {
		if !w.via.IsValid() {
			continue // the interface's own prefix
		}
		route := &types.Route{Dst: *ipNet(w.to), GW: net.IP(w.via.AsSlice()), MTU: w.mtu}
		if w.table != 0 {
			route.Table = &w.table
		}
		r.Routes = append(r.Routes, route)
	}
	return r, nil
}
