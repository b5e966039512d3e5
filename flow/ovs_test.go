package flow

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
)

// startOVS is a private Open vSwitch with the ports of portNames, a group to
// point at and names for two tables.
func startOVS(t *testing.T) *ovstest.Switch {
	s := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "antrea-gw0", Number: 2},
		ovstest.Port{Name: "3abc", Number: 3}, ovstest.Port{Name: "a_b", Number: 4})
	ask(t, s, "add-group", "group_id=1,type=all,bucket=output:1")
	if _, err := s.Vsctl("--", "--id=@a", "create", "Flow_Table", "name=SpoofGuard",
		"--", "--id=@b", "create", "Flow_Table", "name=with-dash",
		"--", "set", "bridge", ovstest.Bridge, "flow_tables:2=@a", "flow_tables:3=@b"); err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, s *ovstest.Switch, args ...string) string {
	t.Helper()
	out, err := s.Ofctl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ovsNames are the names of startOVS.
func ovsNames() *Names {
	n := portNames()
	n.SetTable(2, "SpoofGuard")
	n.SetTable(3, "with-dash")
	return n
}

// dump is what OVS holds, one line by cookie.
func dump(t *testing.T, s *ovstest.Switch) map[string]string {
	lines := make(map[string]string)
	for _, l := range strings.Split(ask(t, s, "--names", "--no-stats", "dump-flows"), "\n") {
		if cookie, _, ok := strings.Cut(l, ","); ok {
			lines[cookie] = l
		}
	}
	return lines
}

// lineOf is the line that ovs-ofctl complains about: its errors say FILE:LINE.
func lineOf(err error, lines []string) string {
	m := regexp.MustCompile(`random\.flows:(\d+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	return lines[n-1]
}

// Random entries over all fields and actions print as Open vSwitch prints them,
// and what we take, Open vSwitch takes.
func TestPrintsAsOVS(t *testing.T) {
	s := startOVS(t)
	g := newGenerator(t, 2024)
	const count = 3000
	var text strings.Builder
	lines := make([]string, count)
	for i := range lines {
		lines[i] = g.entry(i + 1)
		text.WriteString(lines[i] + "\n")
	}
	file := filepath.Join(s.Dir, "random.flows")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ofctl("add-flows", file); err != nil {
		t.Fatalf("%v%s", err, lineOf(err, lines))
	}
	have := dump(t, s)
	wrong := 0
	for _, line := range lines {
		e, err := ParseEntry(line, ovsNames())
		if err != nil {
			t.Fatalf("%s\nOpen vSwitch takes it, we do not: %v", line, err)
		}
		got := e.Text(Format{Names: ovsNames()})
		cookie, _, _ := strings.Cut(got, ",")
		if want := have[cookie]; got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
			if wrong++; wrong > 10 {
				t.FailNow()
			}
		}
	}
}
