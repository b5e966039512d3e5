package agent

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/internal/nstest"
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
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if c.Gateway.MTU != s.mtu || hostOf(c).Tunnel != s.outer || c.Tunnel.Kind().String() != s.kind {
			t.Errorf("%s, IPv6 %v: MTU %d, %+v, want %d, %+v", s.kind, s.v6, c.Gateway.MTU, hostOf(c).Tunnel, s.mtu, s.outer)
		}
		check := Preflight(c, t.TempDir(), t.TempDir())
		if check.TunnelPort != s.outer.Port || check.MTU+check.Overhead != 1500 {
			t.Errorf("%s, IPv6 %v: a Node is checked for %+v", s.kind, s.v6, check)
		}
	}
	if _, err := config.Parse([]byte(withTunnel("type: stt"))); err == nil || !strings.Contains(err.Error(), `tunnel.type: "stt" is none of geneve, vxlan and gre`) {
		t.Errorf("type stt: %v", err)
	}
}

// TestMTUOfTheUnderlay: pods get what its link leaves, but no more than of an Ethernet,
// and no less than their families take; what is given is taken.
func TestMTUOfTheUnderlay(t *testing.T) {
	n, peer := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, n, "eth0", peer, "far")
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	for _, s := range []struct {
		link, mtu int
		config    string
	}{
		{1400, 1350, goodConfig},
		{1400, 1358, withTunnel("type: gre")},
		{1500, 1450, goodConfig},
		{9000, 1450, goodConfig},
		{1300, 1280, goodConfig},
		{600, 576, strings.NewReplacer(`, "fd00:10:10::/64"`, "", `, "fd00:10:10::1/64"`, "").Replace(goodConfig)},
		{1400, 1440, strings.Replace(goodConfig, "gateway:\n", "gateway:\n  mtu: 1440\n", 1)},
	} {
		if err := n.Links().LinkSetMTU(n.Link(t, "eth0"), s.link); err != nil {
			t.Fatal(err)
		}
		n.Do(t, func() {
			c, err := config.Parse([]byte(s.config))
			if err != nil {
				t.Fatal(err)
			}
			if c.Gateway.MTU != s.mtu {
				t.Errorf("a link of %d: MTU %d, want %d, of\n%s", s.link, c.Gateway.MTU, s.mtu, s.config)
			}
		})
	}
}

// TestUnknownTunnelDriver is refused.
func TestUnknownTunnelDriver(t *testing.T) {
	if _, err := config.Parse([]byte(withTunnel("driver: dpdk"))); err == nil || !strings.Contains(err.Error(), `tunnel.driver: "dpdk" is none of kernel, afxdp and auto`) {
		t.Errorf("driver dpdk: %v", err)
	}
}
