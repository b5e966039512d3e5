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

// TestUplinkFaults: modes that are not built, and settings that contradict each other, are
// refused by their key.
func TestUplinkFaults(t *testing.T) {
	for _, s := range []struct{ old, new, want string }{
		{"mode: lab", "mode: shared", "uplink.card: with mode shared"},
		{"mode: lab", "mode: shared, card: eth0", "the driver of the uplink port is tap with uplink.mode: shared"},
		{"mode: lab", "mode: shared, card: eth0", "uplink.mode: with shared there is no bridge port"},
		{"mode: lab", "mode: lab, card: eth0", "uplink.card: with mode shared"},
		{"role: uplink", "role: uplink, driver: tap", "and with no other mode"},
		{"mode: lab", "mode: owned", "uplink.mode: owned is not supported"},
		{"mode: lab", "mode: xdp", `uplink.mode: "xdp" is neither of lab and shared`},
		{"mode: lab, ", "", `uplink.mode: "" is neither of lab and shared`},
		{"egress: direct", "egress: nat", `uplink.egress: "nat" is none of loop and direct`},
		{"egress: direct", "egress: loop", "uplink.router: only with egress: direct"},
		{`, router: "02:00:00:00:00:01"`, "", "uplink.router: missing"},
		{`, mac: "02:00:00:00:00:0a"`, "", "no MAC address of the uplink port"},
		{"program: uplink\n", "program: windows2020\n", "uplink: only with program uplink"},
		{`uplink: {mode: lab, egress: direct, router: "02:00:00:00:00:01"}`, "", "uplink: missing; program uplink wants uplink.mode"},
	} {
		if !strings.Contains(uplinkSection, s.old) {
			t.Fatalf("there is no %q", s.old)
		}
		if _, err := Parse([]byte(strings.Replace(uplinkSection, s.old, s.new, 1))); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%q for %q: %v, want %q", s.new, s.old, err, s.want)
		}
	}
}
