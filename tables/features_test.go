package tables

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the texts of testdata anew; read the difference before committing it")

// TestFeatures switches features off and on. The texts in testdata/features show how the
// scenario's dump changes: removed lines (-) and added ones (+). A line whose goto moves is both.
func TestFeatures(t *testing.T) {
	for name, change := range map[string]func(*Features){
		"no-proxy":                func(f *Features) { f.Proxy = false },
		"no-proxyall":             func(f *Features) { f.ProxyAll = false },
		"no-antreapolicy":         func(f *Features) { f.AntreaPolicy = false },
		"no-egress":               func(f *Features) { f.Egress = false },
		"no-trafficcontrol":       func(f *Features) { f.TrafficControl = false },
		"no-l7":                   func(f *Features) { f.L7Policy = false },
		"no-trafficcontrol-no-l7": func(f *Features) { f.TrafficControl, f.L7Policy = false, false },
		"nothing":                 func(f *Features) { *f = Features{} },
		"dsr":                     func(f *Features) { f.DSR = true },
		"egress-qos":              func(f *Features) { f.EgressQoS = true },
		"multicast":               func(f *Features) { f.Multicast = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := goldenConfig()
			change(&c.Features)
			prog := goldenProgram(c)
			was := append(goldenLines(t, "tables/*.flows"), goldenLines(t, "groups.txt")...)
			now := append(lines(t, prog.Entries, prog.Names), groupLines(prog)...)
			compareText(t, "features/"+name+".diff", differences(was, now))
		})
	}
}

// differences are the lines of only one set, sorted, the removed ones first.
func differences(was, now []string) string {
	var b strings.Builder
	for _, l := range slices.Sorted(slices.Values(was)) {
		if !slices.Contains(now, l) {
			b.WriteString("- " + l + "\n")
		}
	}
	for _, l := range slices.Sorted(slices.Values(now)) {
		if !slices.Contains(was, l) {
			b.WriteString("+ " + l + "\n")
		}
	}
	return b.String()
}

// compareText compares a text with a file of testdata.
func compareText(t *testing.T, file, got string) {
	t.Helper()
	file = "testdata/" + file
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		compareLines(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"))
		t.Errorf("%s is not as above", file)
	}
}

// TestNumbers: numbers are given in order over the tables that exist.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Config)
		last    uint8
		numbers map[string]uint8
	}{
		{"seed", func(*Config) {}, 30, map[string]uint8{"UnSNAT": 5, "AntreaPolicyEgressRule": 13, "AntreaPolicyIngressRule": 25}},
		{"no proxy", func(c *Config) { c.Features.Proxy = false }, 23,
			map[string]uint8{"ConntrackZone": 5, "DNAT": 7, "AntreaPolicyEgressRule": 8}},
		{"dsr", func(c *Config) { c.Features.DSR = true }, 31, map[string]uint8{"DSRServiceMark": 12, "EndpointDNAT": 13}},
		{"IPv6", func(c *Config) { c.PodCIDRs = families{IPv6}.prefixes("10.10.0.0/24") }, 29,
			map[string]uint8{"Classifier": 1, "SpoofGuard": 2, "IPv6": 3, "UnSNAT": 4}},
		{"both", func(c *Config) { c.PodCIDRs = families{IPv6, IPv4}.prefixes("10.10.0.0/24") }, 31,
			map[string]uint8{"ARPSpoofGuard": 1, "IPv6": 5}},
	} {
		config := goldenConfig()
		c.change(&config)
		p := New(config)
		c.numbers["PipelineRootClassifier"], c.numbers["Output"] = p.First(), c.last
		for name, want := range c.numbers {
			if got, ok := p.Names().TableID(name); !ok || got != want {
				t.Errorf("%s: %s is %d (exists: %t), want %d", c.name, name, got, ok, want)
			}
		}
		if name := p.Names().Table(c.last + 1); name != "" {
			t.Errorf("%s: there is a table %s after Output", c.name, name)
		}
	}
}

// TestEgressQoS: a limit of an Egress is a meter in kilobits. Its number is the address's mark.
// Without Egress, the table does not exist.
func TestEgressQoS(t *testing.T) {
	c := goldenConfig()
	c.Features.EgressQoS = true
	meters := goldenProgram(c).Meters
	if got, want := strings.Join(strings.Fields(meters[len(meters)-1].Text()), " "),
		"meter=1 kbps burst bands= type=drop rate=800000 burst_size=2000000"; len(meters) != 4 || got != want {
		t.Errorf("%d meters, the last is %s, want %s", len(meters), got, want)
	}
	c.Features.Egress = false
	if New(c).has(tableEgressQoS) {
		t.Error("EgressQoS without Egress")
	}
}

// TestPacketInRate: without a configured rate, the meters have Antrea's, and not 0.
func TestPacketInRate(t *testing.T) {
	for given, want := range map[uint32]uint32{0: 500, 20: 20} {
		c := goldenConfig()
		c.PacketInRate = given
		m := New(c).packetInMeter(meterPolicy)
		if b := m.Bands[0]; b.Rate != want || b.BurstSize != 2*want {
			t.Errorf("rate %d gives %+v", given, b)
		}
	}
}
