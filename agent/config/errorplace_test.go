package config

import (
	"strings"
	"testing"
)

// TestMisreadNamesTheKey: an error has the keys of all values that cannot be read.
func TestMisreadNamesTheKey(t *testing.T) {
	for _, s := range []struct{ old, new, want string }{
		{"podCIDRs:", "podCIDR:", "podCIDR: unknown key (did you mean podCIDRs?)"},
		{"  mac:", "  colour:", "gateway.colour: unknown key; there are name, ofPort, mac, addresses, "},
		{"[10.10.0.1/24,", "[10.10.0.1,", `gateway.addresses[0]: netip.ParsePrefix("10.10.0.1"): no '/'`},
		{"mac: ba:5e:d1:55:aa:c0", "mac: ba:5e", "gateway.mac: address ba:5e: invalid MAC address"},
		{"address: 192.168.77.103,", "adress: 192.168.77.103,", "peers[0].adress: unknown key (did you mean address?)"},
		{"name: web-a, ofPort: 37", "name: web-a, ofPort: many", "ports[1].ofPort: found string, want a whole number within range"},
		{"ports:\n", "ports: {}\nmetrics: 5\nconntrack: {foo: {}}\nx:\n", "conntrack.foo: unknown key; there are "},
		{"ports:\n", "ports: {}\nmetrics: 5\nx:\n", "metrics: found number, want a set of keys\nports: found object, want a list\nx: unknown key; there are nodeName, "},
		{"nodeName: node-a", "nodeName node-a", "line 3: "},
		{"nodeName: node-a", "nodeName: node-a\nnodeName: node-b", `line 3: key "nodeName" already set in map`},
	} {
		text := strings.Replace(goodConfig, s.old, s.new, 1)
		if text == goodConfig {
			t.Fatalf("no %q", s.old)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%q: %v, want %q", s.new, err, s.want)
		}
	}
}

// FuzzParse: whatever a file has, there is an answer.
func FuzzParse(f *testing.F) {
	f.Add(goodConfig)
	f.Add("a: [[], {b: }]\n? {c: d}\n: e")
	f.Fuzz(func(_ *testing.T, text string) { Parse([]byte(text)) })
}
