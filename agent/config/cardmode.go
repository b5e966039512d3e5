package config

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/tables/uplink"
)

// The relations of card and switch, with program uplink.
const (
	// CardLab: the card is a link without an address. The maker of the links has moved the
	// Node's address to the other end of the bridge port's link.
	CardLab = "lab"
	// CardShared: the kernel keeps the card and its addresses. It gives the switch only packets
	// that may answer a pod.
	CardShared = "shared"
	// CardOwned: the switch has the card. Its addresses and routes move to a tap, the bridge
	// port, and back when the agent ends.
	CardOwned = "owned"
)

// The ways of pods' packets to the outside.
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
		f.check(false, "uplink: missing; program %s needs uplink.mode, one of %s", c.Program, modes)
		return
	}
	u := c.Uplink
	f.check(slices.Contains([]string{CardLab, CardOwned, CardShared}, u.Mode), "uplink.mode: %q is none of %s", u.Mode, modes)
	c.checkCardPorts(f)
	f.check(u.Egress == EgressLoop || u.Egress == EgressDirect, "uplink.egress: %q is none of %s and %s", u.Egress, EgressLoop, EgressDirect)
	f.check(u.Egress != EgressDirect || u.Router != MAC{}, "uplink.router: missing; with egress: %s it is the next hop's MAC address on the card", EgressDirect)
	f.check(u.Egress == EgressDirect || u.Router == MAC{}, "uplink.router: only with egress: %s", EgressDirect)
}

// modes lists all values of uplink.mode.
const modes = CardLab + ", " + CardOwned + " and " + CardShared

// checkCardPorts reports ports that do not fit the mode.
func (c *Config) checkCardPorts(f *faults) {
	shares, owns, up, bridge := c.SharesCard(), c.OwnsCard(), c.PortOf(RoleUplink), c.PortOf(RoleBridge)
	f.check(shares == (c.Uplink.Card != ""), "uplink.card: must be the card's link with mode %s, and must not be set with other modes", CardShared)
	if up != nil {
		f.check(shares == (up.Driver == DriverTap), "port %s: the uplink port must have driver %s with uplink.mode: %s, and only then", up.Name, DriverTap, CardShared)
		f.check(!shares && !owns || up.MAC != MAC{}, "port %s: mac: missing; set it to the card's", up.Name)
	}
	if bridge != nil {
		f.check(owns == (bridge.Driver == DriverTap), "port %s: the bridge port must have driver %s with uplink.mode: %s, and only then", bridge.Name, DriverTap, CardOwned)
	}
	f.check(!owns || c.Tunnel.Driver == DriverKernel, "tunnel.driver: %s; with uplink.mode: %s it must be %s, because the uplink port has the card", c.Tunnel.Driver, CardOwned, DriverKernel)
	f.check(shares == (bridge == nil), "uplink.mode: %s has no bridge port, and each other mode has one", CardShared)
}

// checkOwnedCard refuses a switch that is not the agent's own. The agent would not end it, and
// so would not give the card its addresses back.
func (c *Config) checkOwnedCard() error {
	if c.Switch == "" || !c.OwnsCard() {
		return nil
	}
	return fmt.Errorf("switch: not with uplink.mode: %s: only an agent that ends its switch gives the card its addresses back", CardOwned)
}

// PortOf is the port of a role; nil if there is none.
func (c *Config) PortOf(role string) *Port {
	if i := slices.IndexFunc(c.Ports, func(p Port) bool { return p.Role == role }); i >= 0 {
		return &c.Ports[i]
	}
	return nil
}

// SharesCard says whether the kernel keeps the Node's card.
func (c *Config) SharesCard() bool { return c.Uplink != nil && c.Uplink.Mode == CardShared }

// OwnsCard says whether the card's addresses move to the bridge port.
func (c *Config) OwnsCard() bool { return c.Uplink != nil && c.Uplink.Mode == CardOwned }

// LoopsOut says whether packets to the outside pass through the Node's kernel.
func (c *Config) LoopsOut() bool { return c.Uplink != nil && c.Uplink.Egress == EgressLoop }
