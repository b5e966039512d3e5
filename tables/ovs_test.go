package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/ovstest"
)

// TestOpenVSwitch loads whole pipelines into Open vSwitch, which checks them in
// its own way, and compares what it then has with what it was given.
func TestOpenVSwitch(t *testing.T) {
	var ports []ovstest.Port
	for _, p := range allPorts {
		ports = append(ports, ovstest.Port{Name: p.Name, Number: int(p.No)})
	}
	s := ovstest.Start(t, ports...)
	for _, c := range []struct {
		name     string
		list     families
		features func(*Features)
		release  Release
	}{
		{"golden", families{IPv4}, func(*Features) {}, V115},
		{"IPv6", families{IPv6}, func(*Features) {}, V115},
		{"dual stack", families{IPv4, IPv6}, func(*Features) {}, V115},
		{"DSR", families{IPv4, IPv6}, func(f *Features) { f.DSR = true }, V115},
		{"no proxy", families{IPv4, IPv6}, func(f *Features) { f.Proxy = false }, V115},
		{"no Antrea policy", families{IPv4, IPv6}, func(f *Features) { f.AntreaPolicy = false }, V115},
		{"no features", families{IPv4}, func(f *Features) { *f = Features{} }, V115},
		{"v2", families{IPv4, IPv6}, func(f *Features) { f.DSR, f.EgressQoS, f.Multicast = true, true, true }, V2},
		{"multicast", families{IPv4}, func(f *Features) { f.Multicast, f.AntreaPolicy = true, false }, V115},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := c.list.config()
			c.features(&config.Features)
			config.Release = c.release
			prog := c.list.program(config)
			p := New(config)
			prog.Entries = append(append(prog.Entries, extras(p, c.list)...), p.L7Redirection()...)
			load(t, s, prog)
			out, err := s.Ofctl("--no-stats", "--no-names", "dump-flows")
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, lines(t, prog.Entries, nil), dumpLines(out))
		})
	}
}

// extras are entries of each kind that the scenario does not have.
func extras(p *Pipeline, list families) (all []*flow.Entry) {
	for _, f := range list {
		for proto, port := range map[uint8]uint16{protoTCP: 1001, protoUDP: 1002, protoSCTP: 1003} {
			all = append(all, p.ServiceAddress(ServiceAddress{
				Proto: proto, Addr: f.addr("192.168.77.152"), Port: port, External: true, Group: 1, LocalGroup: 2,
				AffinitySeconds: 60, DSR: true, SourceRanges: list.prefixes("10.1.0.0/16"),
			})...)
		}
	}
	for _, r := range forms(list) {
		all = append(all, p.Rule(r)...)
	}
	return append(all, p.LoggedDefaultDrop(Egress, Pod{Port: db, IPs: list.ips("10.10.0.25")})...)
}

// load replaces what the switch has.
func load(t *testing.T, s *ovstest.Switch, prog *flow.Program) {
	t.Helper()
	var flows, groups, meters strings.Builder
	for _, e := range prog.Entries {
		bare := *e
		bare.Cookie = 0
		flows.WriteString(bare.Text(flow.Format{}) + "\n")
	}
	for _, g := range prog.Groups {
		groups.WriteString(g.Text(nil) + "\n")
	}
	for _, command := range []string{"del-flows", "del-groups", "del-meters"} {
		if _, err := s.Ofctl(command); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range prog.Meters {
		meters.Reset()
		meters.WriteString(strings.ReplaceAll(m.Text(), "\n", ""))
		if _, err := s.Ofctl("add-meter", meters.String()); err != nil {
			t.Fatal(err)
		}
	}
	for command, text := range map[string]string{"add-groups": groups.String()} {
		if _, err := s.Ofctl(command, write(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Ofctl("add-flows", write(t, flows.String())); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func dumpLines(out string) (all []string) {
	for _, l := range strings.Split(out, "\n") {
		if strings.Contains(l, "priority=") {
			all = append(all, strings.TrimSpace(l))
		}
	}
	return all
}
