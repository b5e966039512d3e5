package config

import (
	"strings"
	"testing"
)

// uplinkSection is programConfig with program uplink.
var uplinkSection = strings.NewReplacer(
	"program: windows2020", "program: uplink\nuplink: {mode: lab, egress: direct, router: \"02:00:00:00:00:01\"}",
	"role: uplink", `role: uplink, mac: "02:00:00:00:00:0a"`,
).Replace(programConfig)

// TestUplinkModes: what program uplink uses the card for is said by the configuration; loop is
// the usual way, and a next hop makes it direct.
func TestUplinkModes(t *testing.T) {
	c, err := Parse([]byte(uplinkSection))
	if err != nil {
		t.Fatal(err)
	}
	if c.ProgramNode().Router != [6]byte{2, 0, 0, 0, 0, 1} || c.LoopsOut() {
		t.Errorf("direct: %+v", c.Uplink)
	}
	if c, err = Parse([]byte(strings.Replace(uplinkSection, `, egress: direct, router: "02:00:00:00:00:01"`, "", 1))); err != nil {
		t.Fatal(err)
	}
	if c.Uplink.Egress != EgressLoop || c.ProgramNode().Router != [6]byte{} || !c.LoopsOut() {
		t.Errorf("loop: %+v", c.Uplink)
	}
}

// ownedSection is uplinkSection with a card whose addresses move.
var ownedSection = strings.NewReplacer("mode: lab", "mode: owned", "role: bridge", "role: bridge, driver: tap").Replace(uplinkSection)

// TestOwnedCard: a card whose addresses move has a tap beside it. Its driver, its MAC and its switch
// have to be such that the addresses can come back.
func TestOwnedCard(t *testing.T) {
	if c, err := Parse([]byte(ownedSection)); err != nil || !c.OwnsCard() || c.SharesCard() {
		t.Errorf("%v, %+v", err, c)
	}
	for _, s := range []struct{ old, new, want string }{
		{"localAddress: 192.0.2.10}", "localAddress: 192.0.2.10, driver: auto}", "tunnel.driver: auto; with uplink.mode: owned it must be kernel"},
		{"program: uplink", "switch: /run/switch.sock\nprogram: uplink", "switch: not with uplink.mode: owned"},
		{`, mac: "02:00:00:00:00:0a"`, "", "port uplink: mac: missing; set it to the card's"},
		{"role: uplink", "role: uplink, driver: tap", "the uplink port must have driver tap with uplink.mode: shared"},
	} {
		if !strings.Contains(ownedSection, s.old) {
			t.Fatalf("there is no %q", s.old)
		}
		if _, err := Parse([]byte(strings.Replace(ownedSection, s.old, s.new, 1))); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%q for %q: %v, want %q", s.new, s.old, err, s.want)
		}
	}
}

// TestUplinkFaults: modes that there are not, and settings that contradict each other, are
// refused by their key.
func TestUplinkFaults(t *testing.T) {
	for _, s := range []struct{ old, new, want string }{
		{"mode: lab", "mode: shared", "uplink.card: must be the card's link with mode shared"},
		{"mode: lab", "mode: shared, card: eth0", "the uplink port must have driver tap with uplink.mode: shared"},
		{"mode: lab", "mode: shared, card: eth0", "uplink.mode: shared has no bridge port"},
		{"mode: lab", "mode: lab, card: eth0", "uplink.card: must be the card's link with mode shared"},
		{"role: uplink", "role: uplink, driver: tap", "and only then"},
		{"mode: lab", "mode: owned", "port br-int: the bridge port must have driver tap with uplink.mode: owned"},
		{"role: bridge", "role: bridge, driver: tap", "and only then"},
		{"mode: lab", "mode: owned, card: eth0", "uplink.card: must be the card's link with mode shared"},
		{"mode: lab", "mode: xdp", `uplink.mode: "xdp" is none of lab, owned and shared`},
		{"mode: lab, ", "", `uplink.mode: "" is none of lab, owned and shared`},
		{"egress: direct", "egress: nat", `uplink.egress: "nat" is none of loop and direct`},
		{"egress: direct", "egress: loop", "uplink.router: only with egress: direct"},
		{`, router: "02:00:00:00:00:01"`, "", "uplink.router: missing"},
		{`, mac: "02:00:00:00:00:0a"`, "", "no MAC address of the uplink port"},
		{"program: uplink\n", "program: windows2020\n", "uplink: only with program uplink"},
		{`uplink: {mode: lab, egress: direct, router: "02:00:00:00:00:01"}`, "", "uplink: missing; program uplink needs uplink.mode"},
	} {
		if !strings.Contains(uplinkSection, s.old) {
			t.Fatalf("there is no %q", s.old)
		}
		if _, err := Parse([]byte(strings.Replace(uplinkSection, s.old, s.new, 1))); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%q for %q: %v, want %q", s.new, s.old, err, s.want)
		}
	}
}
