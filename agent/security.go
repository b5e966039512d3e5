package agent

import (
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
)

// Port security of this Node's ports. The switch knows no Pods (dataplane/security.go);
// so the agent gives it the addresses of each port:
//
//	a Pod's port    sends from the Pod's own MAC only; anything else is dropped
//	gateway, tunnel send from any MAC, because they forward; no port may
//	                teach the switch their own
//	other ports     taps for TrafficControl and L7 inspection: no security
//
// The MAC goes with the port (Port.MAC). So it is in the flow snapshot, and a
// successor has it before packets move.

// security is what a port of Pods, or of objects, may send.
func (p *Port) security(tags bool) dataplane.PortSecurity {
	if p.MAC == (MAC{}) {
		return dataplane.PortSecurity{}
	}
	return dataplane.PortSecurity{MACs: [][6]byte{p.MAC}, Enforced: true, Tags: tags}
}

// opens says whether two ports are opened alike. They may have different security.
func (p Port) opens(q Port) bool {
	p.MAC, q.MAC = MAC{}, MAC{}
	return p == q
}

// podMAC is the MAC of a port's Pod; zero for a port without a Pod.
func podMAC(p *control.SwitchPort) MAC {
	if p.Pod == (control.Name{}) {
		return MAC{}
	}
	return p.MAC
}

// securityOf is the security of a Node's ports by number, as its NodeConfig says.
func securityOf(c *control.NodeConfig) map[uint32]dataplane.PortSecurity {
	if c == nil {
		return nil
	}
	all := map[uint32]dataplane.PortSecurity{c.Gateway.OFPort: {MACs: [][6]byte{c.Gateway.MAC}}}
	for i := range c.Ports {
		p := Port{MAC: podMAC(&c.Ports[i])}
		all[c.Ports[i].OFPort] = p.security(false)
	}
	return all
}
