package agent

import (
	"net/netip"

	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/tunnel"
)

// Tunnel is the port to the other Nodes. The VNI is 0 unless an entry sets
// tun_id. LocalAddress is IPv4 or IPv6, and all peers' addresses are like it;
// pods of either family go through the tunnel.
type Tunnel struct {
	Name   string `json:"name,omitempty"`
	OFPort uint32 `json:"ofPort,omitempty"`
	// Type is geneve, vxlan or gre, the same on all Nodes; geneve when not given.
	Type         string     `json:"type,omitempty"`
	LocalAddress netip.Addr `json:"localAddress"`
}

func (t *Tunnel) setDefaults() {
	orDefault(&t.Name, DefaultTunnel)
	orDefault(&t.OFPort, DefaultTunnelPort)
	orDefault(&t.Type, tunnel.KindGeneve.String())
}

func (t *Tunnel) check(f *faults) {
	_, known := tunnel.KindNamed(t.Type)
	f.check(known, "tunnel.type: %q is none of geneve, vxlan and gre", t.Type)
	f.check(t.OFPort < 0xff00, "tunnel.ofPort: %d is not between 1 and 65279", t.OFPort)
	f.check(isNodeAddress(t.LocalAddress), "tunnel.localAddress: %v is no address of a Node", t.LocalAddress)
}

// kind is the tunnel's type, once that has been checked.
func (t *Tunnel) kind() tunnel.Kind {
	k, _ := tunnel.KindNamed(t.Type)
	return k
}

// outer is what the Node's side knows outer packets by.
func (t *Tunnel) outer() host.Outer {
	return host.Outer{Proto: t.kind().Proto(), Port: t.kind().Port()}
}

// ethernetMTU is the underlay's where nobody says otherwise.
const ethernetMTU = 1500

// DefaultMTU is that of gateway and pods when none is given: an Ethernet's, less
// what a tunnel of this kind over IPv4 or IPv6 takes of it.
func DefaultMTU(k tunnel.Kind, v6 bool) int { return ethernetMTU - k.Overhead(v6) }
