package vswitchd

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// TestTunnelSpec: a row's options become a tunnel of the door, or an error that names the
// option that antrail does not have.
func TestTunnelSpec(t *testing.T) {
	for _, c := range []struct {
		kind    string
		options map[string]string
		wrong   string // in the error; "" for none
	}{
		{"geneve", map[string]string{"csum": "true"}, ""},
		{"vxlan", map[string]string{"dst_port": "4789", "csum": "false"}, ""},
		{"gre", map[string]string{"key": "0"}, ""},
		{"gre", map[string]string{"csum": "true"}, "options:csum=true"},
		{"vxlan", map[string]string{"dst_port": "8472"}, "options:dst_port=8472"},
		{"geneve", map[string]string{"key": "5"}, "options:key=5"},
		{"geneve", map[string]string{"key": "5", "remote_ip": "10.0.0.1"}, ""},
		{"geneve", map[string]string{"key": "16777216", "remote_ip": "10.0.0.1"}, "options:key=16777216"},
		{"gre", map[string]string{"remote_ip": "10.0.0.1"}, ""},
		{"geneve", map[string]string{"remote_ip": "fd00::1"}, "two families"},
		{"geneve", map[string]string{"remote_ip": "224.0.0.1"}, "options:remote_ip=224.0.0.1"},
		{"geneve", map[string]string{"remote_ip": "there"}, "options:remote_ip=there"},
		{"geneve", map[string]string{"remote_ip": ""}, "options:remote_ip"},
		{"geneve", map[string]string{"local_ip": "here"}, "options:local_ip"},
		{"geneve", map[string]string{"psk": "secret"}, "options:psk"},
	} {
		p := bridge.Port{Name: "tun0", Type: c.kind, Number: 1, Tag: -1, Options: map[string]string{"remote_ip": "flow", "key": "flow", "local_ip": "127.0.0.1"}}
		for name, value := range c.options {
			p.Options[name] = value
		}
		spec, err := specOf(&p)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s %v: %v, want an error about %s", c.kind, c.options, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %v: %v", c.kind, c.options, err)
			continue
		}
		if spec.Driver != door.DriverTunnel || spec.Link != "" || spec.Tap != nil || spec.No != 1 {
			t.Errorf("%s %v: %+v", c.kind, c.options, spec)
		}
		got := *spec.Tunnel
		if got.MTU < 1000 || got.MTU > 65536 {
			t.Errorf("%s %v: an MTU of %d", c.kind, c.options, got.MTU)
		}
		if got.Kind != c.kind || got.Local != netip.MustParseAddr("127.0.0.1") || got.AnyPeer == got.Only.IsValid() || got.AnyNetwork && got.Network != 0 || got.AnyNetwork != (p.Options["key"] == "flow") || len(got.Peers) > 0 {
			t.Errorf("%s %v: %+v", c.kind, c.options, got)
		}
	}
}
