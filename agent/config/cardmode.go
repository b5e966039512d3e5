package config

import "github.com/antrail/antrail/tables/uplink"

// How the card belongs to the switch, with program uplink.
const (
	// CardLab: the card is a link without an address, and the Node's address is on the other
	// end of the bridge port's link. Whoever makes the links has moved it.
	CardLab = "lab"
	// CardShared and CardOwned are not built: the card stays the kernel's, or its addresses
	// move to the switch.
	CardShared, CardOwned = "shared", "owned"
)

// The ways by which packets of pods go to the outside.
const (
	EgressLoop   = "loop"   // by the gateway, the host's routes and the bridge port
	EgressDirect = "direct" // by the card at once
)

// Uplink says how program uplink uses the card.
type Uplink struct {
	// Mode is how the card belongs to the switch. It is lab: the card has no address, and the
	// Node's address is on the other end of the bridge port's link.
	Mode string `json:"mode,omitempty"`
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

// checkUplink reports the section's faults. A mode that is not built is one.
func (c *Config) checkUplink(f *faults) {
	if c.Program != uplink.Program.Name {
		f.check(c.Uplink == nil, "uplink: only with program %s", uplink.Program.Name)
		return
	}
	if c.Uplink == nil {
		f.check(false, "uplink: missing; program %s wants uplink.mode: %s", c.Program, CardLab)
		return
	}
	u := c.Uplink
	switch u.Mode {
	case CardLab:
	case CardShared, CardOwned:
		f.check(false, "uplink.mode: %s is not supported: antrail neither shares a card with the kernel nor moves its addresses; give the switch a link of its own and set %s", u.Mode, CardLab)
	default:
		f.check(false, "uplink.mode: %q is not %s", u.Mode, CardLab)
	}
	f.check(u.Egress == EgressLoop || u.Egress == EgressDirect, "uplink.egress: %q is none of %s and %s", u.Egress, EgressLoop, EgressDirect)
	f.check(u.Egress != EgressDirect || u.Router != MAC{}, "uplink.router: missing; with egress: %s it is the next hop's MAC address on the card", EgressDirect)
	f.check(u.Egress == EgressDirect || u.Router == MAC{}, "uplink.router: only with egress: %s", EgressDirect)
}

// LoopsOut says whether packets to the outside pass through the host.
func (c *Config) LoopsOut() bool { return c.Uplink != nil && c.Uplink.Egress == EgressLoop }
