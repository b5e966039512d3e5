package preflight

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUnitHasTheAgentsCapabilities: systemd gives the service exactly the capabilities that
// an agent keeps with its switch as a child.
func TestUnitHasTheAgentsCapabilities(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/antrail.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindStringSubmatch(string(unit))
	if line == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	kept := map[string]bool{}
	for _, c := range slices.Concat(needed, forChild, forSome) {
		kept[c.Name] = true
	}
	has := slices.Sorted(slices.Values(strings.Fields(line[1])))
	if want := slices.Sorted(maps.Keys(kept)); !slices.Equal(has, want) {
		t.Errorf("the unit allows\n%q\nthe agent keeps\n%q", has, want)
	}
}

// TestUnitGivesTheCardBack: systemd returns the card's addresses if agent and switch are
// killed.
func TestUnitGivesTheCardBack(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/antrail.service")
	if err != nil || !strings.Contains(string(unit), "\nExecStopPost=/usr/bin/antrail uninstall --card\n") {
		t.Errorf("%v:\n%s", err, unit)
	}
}
