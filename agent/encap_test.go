package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
)

// withMode is goodConfig with a mode, and peers' addresses in both families.
func withMode(keys string) string {
	text := strings.Replace(goodConfig, "podCIDRs: [10.10.0.0/24", keys+"\npodCIDRs: [10.10.0.0/24", 1)
	return strings.Replace(text, "address: 192.168.77.103,", "address: 192.168.77.103, nodeIPs: [192.168.77.103, 'fd00:77::103'],", 1)
}

// TestEncapModes: how the Node leads to pods of another, and what is left of the MTU.
func TestEncapModes(t *testing.T) {
	const far, six = "10.10.1.0/24 via 192.168.77.103", "fd00:10:10:1::/64 via fd00:77::103"
	const far4, far6 = "10.10.1.0/24 via the gateway", "fd00:10:10:1::/64 via the gateway"
	for keys, want := range map[string]struct {
		mtu  int
		port uint16
		ways string
	}{
		"trafficEncapMode: encap":   {1450, 6081, far4 + ", " + far6},
		"trafficEncapMode: noEncap": {1500, 0, far + ", " + six},
		"trafficEncapMode: hybrid\ntransportCIDRs: [192.168.77.0/24, 'fd00:77::/64']": {1450, 6081, far + ", " + six},
		"trafficEncapMode: hybrid\ntransportCIDRs: [192.168.77.0/24]":                 {1450, 6081, far + ", " + far6},
		"trafficEncapMode: hybrid\ntransportCIDRs: [192.168.78.0/24, 'fd00:78::/64']": {1450, 6081, far4 + ", " + far6},
	} {
		c, err := config.Parse([]byte(withMode(keys)))
		if err != nil {
			t.Fatalf("%s: %v", keys, err)
		}
		h := hostOf(c)
		var ways []string
		for _, p := range h.Peers {
			via := "the gateway"
			if p.NextHop.IsValid() {
				via = p.NextHop.String()
			}
			ways = append(ways, fmt.Sprintf("%v via %s", p.PodCIDR, via))
		}
		if got := strings.Join(ways, ", "); got != want.ways || c.Gateway.MTU != want.mtu || h.Tunnel.Port != want.port {
			t.Errorf("%s: MTU %d, %+v, %s; want MTU %d, port %d, %s", keys, c.Gateway.MTU, h.Tunnel, got, want.mtu, want.port, want.ways)
		}
	}
}

func TestEncapModeFaults(t *testing.T) {
	for text, want := range map[string]string{
		withMode("trafficEncapMode: encapsulate"):                                           `trafficEncapMode: "encapsulate" is none of encap, noEncap, hybrid and networkPolicyOnly`,
		withMode("trafficEncapMode: hybrid"):                                                "transportCIDRs: missing; trafficEncapMode hybrid needs them",
		strings.Replace(goodConfig, "nodeName:", "trafficEncapMode: noEncap\nnodeName:", 1): "peers[0].nodeIPs: none is of the family of podCIDRs[1], fd00:10:10:1::/64, and there is no tunnel",
		strings.Replace(withMode(""), "'fd00:77::103'", "'fe80::1'", 1):                     "peers[0].nodeIPs[1]: fe80::1 cannot be the address of a Node",
	} {
		if _, err := config.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
