package agent

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/host"
)

// withTunnel is goodConfig with more keys of the tunnel.
func withTunnel(keys string) string {
	return strings.Replace(goodConfig, "tunnel:\n", "tunnel:\n  "+keys+"\n", 1)
}

// TestTunnelTypes: each type has its MTU, and what the Node knows its packets by.
func TestTunnelTypes(t *testing.T) {
	for _, s := range []struct {
		kind  string
		v6    bool
		mtu   int
		outer host.Outer
	}{
		{"geneve", false, 1450, host.Outer{Proto: 17, Port: 6081}},
		{"vxlan", false, 1450, host.Outer{Proto: 17, Port: 4789}},
		{"vxlan", true, 1430, host.Outer{Proto: 17, Port: 4789}},
		{"gre", false, 1458, host.Outer{Proto: 47}},
		{"gre", true, 1438, host.Outer{Proto: 47}},
	} {
		text := withTunnel("type: " + s.kind)
		if s.v6 {
			text = strings.NewReplacer("192.168.77.102", "fd00:77::102", "192.168.77.103", "fd00:77::103").Replace(text)
		}
		c, err := ParseConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if c.Gateway.MTU != s.mtu || c.host().Tunnel != s.outer || c.Tunnel.kind().String() != s.kind {
			t.Errorf("%s, IPv6 %v: MTU %d, %+v, want %d, %+v", s.kind, s.v6, c.Gateway.MTU, c.host().Tunnel, s.mtu, s.outer)
		}
		check := c.Preflight(t.TempDir(), t.TempDir())
		if check.TunnelPort != s.outer.Port || check.MTU+check.Overhead != 1500 {
			t.Errorf("%s, IPv6 %v: a Node is checked for %+v", s.kind, s.v6, check)
		}
	}
	if _, err := ParseConfig([]byte(withTunnel("type: stt"))); err == nil || !strings.Contains(err.Error(), `tunnel.type: "stt" is none of geneve, vxlan and gre`) {
		t.Errorf("type stt: %v", err)
	}
}
