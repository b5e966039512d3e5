package parse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/ovstest"
)

// startOVS starts a private Open vSwitch with the ports of portNames, a group to refer to and
// names for two tables.
func startOVS(t *testing.T) *ovstest.Switch {
	s := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "antrea-gw0", Number: 2},
		ovstest.Port{Name: "3abc", Number: 3}, ovstest.Port{Name: "a_b", Number: 4})
	askSwitch(t, s, "add-group", "group_id=1,type=all,bucket=output:1")
	for i := range flow.TunMetadataFields {
		askSwitch(t, s, "add-tlv-map", fmt.Sprintf("{class=0x102,type=%d,len=%d}->tun_metadata%d", i, flow.MaxTunMetadata, i))
	}
	if _, err := s.Vsctl("--", "--id=@a", "create", "Flow_Table", "name=SpoofGuard",
		"--", "--id=@b", "create", "Flow_Table", "name=with-dash",
		"--", "set", "bridge", ovstest.Bridge, "flow_tables:2=@a", "flow_tables:3=@b"); err != nil {
		t.Fatal(err)
	}
	return s
}

func askSwitch(t *testing.T, s *ovstest.Switch, args ...string) string {
	t.Helper()
	out, err := s.Ofctl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ovsNames are the names of startOVS.
func ovsNames() *flow.Names {
	n := portNames()
	n.SetTable(2, "SpoofGuard")
	n.SetTable(3, "with-dash")
	return n
}

// dump has the lines of a dump of OVS, by cookie.
func dump(t *testing.T, s *ovstest.Switch, args ...string) map[uint64]string {
	t.Helper()
	lines := make(map[uint64]string)
	for _, l := range strings.Split(askSwitch(t, s, args...), "\n") {
		text, _, _ := strings.Cut(strings.TrimPrefix(l, " cookie=0x"), ",")
		if cookie, err := strconv.ParseUint(text, 16, 64); err == nil {
			lines[cookie] = l
		}
	}
	return lines
}

// lineOf is the line in ovs-ofctl's error, which is FILE:LINE.
func lineOf(err error, lines []string) string {
	m := regexp.MustCompile(`random\.flows:(\d+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	return lines[n-1]
}

// load adds random entries to OVS and returns their lines.
func load(t *testing.T, s *ovstest.Switch, count int) []string {
	t.Helper()
	g := newGenerator(t, 2024)
	lines := make([]string, count)
	for i := range lines {
		lines[i] = g.entry(i + 1)
	}
	file := filepath.Join(s.Dir, "random.flows")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ofctl("add-flows", file); err != nil {
		t.Fatalf("%v%s", err, lineOf(err, lines))
	}
	return lines
}

// Random entries over all fields and actions print as Open vSwitch prints them. Open vSwitch
// accepts the entries that the parser accepts.
func TestPrintsAsOVS(t *testing.T) {
	s := startOVS(t)
	lines := load(t, s, 3000)
	have := dump(t, s, "--names", "--no-stats", "dump-flows")
	wrong := 0
	for _, line := range lines {
		e, err := parse.Entry(line, ovsNames())
		if err != nil {
			t.Fatalf("%s\nOpen vSwitch takes it, we do not: %v", line, err)
		}
		got := e.Text(flow.Format{Names: ovsNames()})
		if want := have[e.Cookie]; got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
			if wrong++; wrong > 10 {
				t.FailNow()
			}
		}
	}
}

// ovs-ofctl prints OpenFlow 1.0 by default, with counters and numbers. The parser reads the same
// match from it.
func TestReadsOpenFlow10(t *testing.T) {
	s := startOVS(t)
	lines := load(t, s, 1000)
	have := dump(t, s, "-OOpenFlow10", "--no-names", "dump-flows")
	for _, line := range lines {
		e, err := parse.Entry(line, ovsNames())
		if err != nil {
			t.Fatal(err)
		}
		if _, actions, _ := strings.Cut(line, "actions="); strings.Contains(strings.ToLower(actions), "vlan") {
			continue // 1.0 has no push_vlan and no half of a TCI: its dump differs
		}
		old, err := parse.Entry(have[e.Cookie], nil)
		switch {
		case err != nil:
			t.Errorf("%s\nis printed as %s\nwhich is refused: %v", line, have[e.Cookie], err)
		case old.Match != e.Match || old.Table != e.Table || old.Priority != e.Priority:
			t.Errorf("%s\nis printed as %s\nwhich reads as  %s", line, have[e.Cookie], old)
		}
	}
}

// partOfMod are fields that OpenFlow 1.0 sets as a whole. Open vSwitch prints a set of a part of
// one as a set of the whole (set_field_to_legacy_openflow ignores the mask).
var partOfMod = regexp.MustCompile(`(eth_src|eth_dst|ip_src|ip_dst|tcp_src|tcp_dst|udp_src|udp_dst|vlan_tci|vlan_vid|nw_tos|nw_ecn|ip_ecn|ip_dscp)`)

// TestPrintsOpenFlow10: entries and actions are spelled as by ovs-ofctl -O OpenFlow10.
func TestPrintsOpenFlow10(t *testing.T) {
	s := startOVS(t)
	lines := load(t, s, 3000)
	have := dump(t, s, "-OOpenFlow10", "--names", "--no-stats", "dump-flows")
	wrong, compared := 0, 0
	for _, line := range lines {
		e, err := parse.Entry(line, ovsNames())
		if err != nil {
			t.Fatal(err)
		}
		modern := e.Text(flow.Format{Names: ovsNames()})
		_, actions, _ := strings.Cut(modern, "actions=")
		if strings.Contains(actions, "vlan") || setsPart(e.Actions) {
			continue
		}
		compared++
		got := e.Text(flow.Format{Names: ovsNames(), Version: flow.OpenFlow10})
		if want := have[e.Cookie]; got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
			if wrong++; wrong > 10 {
				t.FailNow()
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d of %d entries were compared", compared, len(lines))
	}
}

// setsPart reports whether actions set a part of a field that OpenFlow 1.0 sets as a whole.
func setsPart(actions []flow.Action) bool {
	for _, a := range actions {
		var id flow.FieldID
		var mask flow.Value
		switch a := a.(type) {
		case flow.SetField:
			id, mask = a.Field, a.Mask
		case flow.Load:
			id, mask = a.Dst.Field, a.Dst.Mask()
		case flow.Clone:
			if setsPart(a.Actions) {
				return true
			}
			continue
		default:
			continue
		}
		if f := flow.FieldByID(id); mask != flow.Ones(f.Bits) && partOfMod.MatchString(f.Name) {
			return true
		}
	}
	return false
}

// TestPrintsVLANsOfOpenFlow10: the actions on VLAN tags and meters, which differ most.
func TestPrintsVLANsOfOpenFlow10(t *testing.T) {
	for actions, want := range map[string]string{
		"push_vlan:0x8100,set_field:4099->vlan_vid,output:2": "mod_vlan_vid:3,output:2",
		"pop_vlan,goto_table:4":                              "strip_vlan,resubmit(,4)",
		"set_field:0x1234->vlan_tci":                         "mod_vlan_vid:564,mod_vlan_pcp:0",
		"set_field:0->vlan_tci":                              "strip_vlan",
		"meter:1":                                            "drop",
		"set_field:10.0.0.0/8->ip_src":                       "load:0xa->NXM_OF_IP_SRC[24..31]",
	} {
		e, err := parse.Entry("ip,vlan_tci=0x1000/0x1000 actions="+actions, nil)
		if err != nil {
			t.Errorf("%s: %v", actions, err)
			continue
		}
		if got := e.Text(flow.Format{Version: flow.OpenFlow10}); !strings.HasSuffix(got, "actions="+want) {
			t.Errorf("%s is printed as %s, want %s", actions, got, want)
		}
	}
}
