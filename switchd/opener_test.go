//go:build linux

package switchd

import (
	"net/netip"
	"strings"
	"testing"
)

// TestUplinkOfLocalAddress: without tunnel.uplink the switch takes the link that has
// tunnel.localAddress, and names the address if no link has it.
func TestUplinkOfLocalAddress(t *testing.T) {
	if link, err := linkOf(netip.MustParseAddr("127.0.0.1")); err != nil || link != "lo" {
		t.Errorf("the link of 127.0.0.1 is %q, %v", link, err)
	}
	if link, err := linkOf(netip.MustParseAddr("203.0.113.250")); err == nil || !strings.Contains(err.Error(), "203.0.113.250") {
		t.Errorf("the link of 203.0.113.250 is %q, %v", link, err)
	}
}
