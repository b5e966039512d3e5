package podports

import (
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/l2"
)

// Port security of this Node's ports. The switch knows no Pods (dataplane/security.go), so the
// agent gives it the addresses of each port:
//
//	a Pod's port    sends from the Pod's own MAC only; anything else is dropped. With a
//	                VLAN, it is an access port of it
//	gateway, tunnel send from any MAC, because they forward; no port may
//	                teach the switch their own
//	card and bridge of a program: they bring what others send, from any MAC
//	other ports     taps for TrafficControl and L7 inspection: no security
//
// The MAC goes with the port (Port.MAC). So it is in the switch's file, and the next switch has
// it before packets move.

// Security is what a port of a Pod, or of an object, may send.
func Security(p *config.Port, tags bool) l2.PortSecurity {
	if p.MAC == (config.MAC{}) || p.Role == config.RoleUplink || p.Role == config.RoleBridge {
		return l2.PortSecurity{}
	}
	return l2.PortSecurity{MACs: []l2.MAC{p.MAC}, Enforced: true, Tags: tags && p.VLAN == 0, VLAN: p.VLAN}
}

// opensAlike says whether two ports are opened alike. They may have different security.
func opensAlike(p, q config.Port) bool {
	p.MAC, q.MAC, p.VLAN, q.VLAN = config.MAC{}, config.MAC{}, 0, 0
	return p == q
}

// MAC is the MAC of a port's Pod; zero for a port without a Pod.
func MAC(p *cluster.SwitchPort) config.MAC {
	if p.Pod == (cluster.Name{}) {
		return config.MAC{}
	}
	return p.MAC
}

// SecurityOf is the security of a Node's ports in its NodeConfig, by port number.
func SecurityOf(c *cluster.NodeConfig) map[uint32]l2.PortSecurity {
	if c == nil {
		return nil
	}
	all := map[uint32]l2.PortSecurity{c.Gateway.OFPort: {MACs: []l2.MAC{c.Gateway.MAC}}}
	for i := range c.Ports {
		p := config.Port{MAC: MAC(&c.Ports[i]), VLAN: c.Ports[i].VLAN}
		all[c.Ports[i].OFPort] = Security(&p, false)
	}
	return all
}
