package config

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/tables/uplink"
)

// How the card belongs to the switch, with program uplink.
const (
	// CardLab: the card is a link without an address, and the Node's address is on the other
	// end of the bridge port's link. Whoever makes the links has moved it.
	CardLab = "lab"
	// CardShared: the card stays the kernel's with its addresses. The kernel gives the switch
	// only packets that may answer a pod.
	CardShared = "shared"
	// CardOwned: the card is the switch's. Its addresses and routes move to a tap, the bridge port,
	// and back when the agent ends.
	CardOwned = "owned"
)

// The ways by which packets of pods go to the outside.
const (
	EgressLoop   = "loop"   // by the gateway, the host's routes and the bridge port
	EgressDirect = "direct" // by the card at once
)

// Uplink says how program uplink uses the card.
type Uplink struct {
	// Mode is how the card belongs to the switch. With shared, the card stays the kernel's. Then
	// the uplink port is a tap, and the switch has no bridge port. With owned, the bridge port is a
	// tap that gets the card's addresses and routes. With lab, the other end of the bridge port's
	// link has the Node's address.
	Mode string `json:"mode,omitempty"`
	// Card is the link that is shared. Only with shared, which needs it.
	Card string `json:"card,omitempty"`
	// Egress is how packets of pods leave: loop (by the gateway and the Node's routes), or
	// direct (by the card at once, all to router).
	Egress string `json:"egress,omitempty" default:"loop"`
	// Router is the MAC address of the next hop on the card. Only with direct, which needs it.
	Router MAC `json:"router,omitzero"`
}

func (u *Uplink) setDefaults() {
	if u != nil {
		orDefault(&u.Egress, EgressLoop)
	}
}

// checkUplink reports the section's faults.
func (c *Config) checkUplink(f *faults) {
	if c.Program != uplink.Program.Name {
		f.check(c.Uplink == nil, "uplink: only with program %s", uplink.Program.Name)
		return
	}
	if c.Uplink == nil {
		f.check(false, "uplink: missing; program %s wants uplink.mode, one of %s", c.Program, modes)
		return
	}
	u := c.Uplink
	f.check(slices.Contains([]string{CardLab, CardOwned, CardShared}, u.Mode), "uplink.mode: %q is none of %s", u.Mode, modes)
	c.checkCardPorts(f)
	f.check(u.Egress == EgressLoop || u.Egress == EgressDirect, "uplink.egress: %q is none of %s and %s", u.Egress, EgressLoop, EgressDirect)
	f.check(u.Egress != EgressDirect || u.Router != MAC{}, "uplink.router: missing; with egress: %s it is the next hop's MAC address on the card", EgressDirect)
	f.check(u.Egress == EgressDirect || u.Router == MAC{}, "uplink.router: only with egress: %s", EgressDirect)
}

// modes are all.
const modes = CardLab + ", " + CardOwned + " and " + CardShared

// checkCardPorts finds ports that the mode does not have, or has otherwise.
func (c *Config) checkCardPorts(f *faults) {
	shares, owns, up, bridge := c.SharesCard(), c.OwnsCard(), c.PortOf(RoleUplink), c.PortOf(RoleBridge)
	f.check(shares == (c.Uplink.Card != ""), "uplink.card: with mode %s, the card's link, and with no other mode", CardShared)
	if up != nil {
		f.check(shares == (up.Driver == DriverTap), "port %s: the driver of the uplink port is %s with uplink.mode: %s, and with no other mode", up.Name, DriverTap, CardShared)
		f.check(!shares && !owns || up.MAC != MAC{}, "port %s: no mac; it is the card's", up.Name)
	}
	if bridge != nil {
		f.check(owns == (bridge.Driver == DriverTap), "port %s: the driver of the bridge port is %s with uplink.mode: %s, and with no other mode", bridge.Name, DriverTap, CardOwned)
	}
	f.check(!owns || c.Tunnel.Driver == DriverKernel, "tunnel.driver: %s, but with uplink.mode: %s it is %s: the card is the uplink port's", c.Tunnel.Driver, CardOwned, DriverKernel)
	f.check(shares == (bridge == nil), "uplink.mode: with %s there is no bridge port, and in each other mode there is one", CardShared)
}

// checkOwnedCard refuses a switch that is not the agent's own: the agent would not end it, and so not
// give the card its addresses back.
func (c *Config) checkOwnedCard() error {
	if c.Switch == "" || !c.OwnsCard() {
		return nil
	}
	return fmt.Errorf("switch: not with uplink.mode: %s: the agent that ends the switch gives the card its addresses back", CardOwned)
}

// PortOf is the port of a role; nil if there is none.
func (c *Config) PortOf(role string) *Port {
	if i := slices.IndexFunc(c.Ports, func(p Port) bool { return p.Role == role }); i >= 0 {
		return &c.Ports[i]
	}
	return nil
}

// SharesCard says whether the Node's card stays the kernel's.
func (c *Config) SharesCard() bool { return c.Uplink != nil && c.Uplink.Mode == CardShared }

// OwnsCard says whether the card's addresses move to the bridge port.
func (c *Config) OwnsCard() bool { return c.Uplink != nil && c.Uplink.Mode == CardOwned }

// LoopsOut says whether packets to the outside pass through the host.
func (c *Config) LoopsOut() bool { return c.Uplink != nil && c.Uplink.Egress == EgressLoop }
