package local

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/packet"
)

// TestWentPath separates connections of a Service's address, and of a NodePort at
// any address, from others.
func TestWentPath(t *testing.T) {
	at := netip.MustParseAddrPort
	service := door.Path{Proto: packet.ProtoUDP, Service: at("10.96.0.10:53"), Endpoint: at("10.10.0.24:5353")}
	nodePort := door.Path{Proto: packet.ProtoUDP, Service: netip.AddrPortFrom(netip.Addr{}, 30053), Endpoint: at("10.10.0.24:5353")}
	paths := map[door.Path]bool{service: true, nodePort: true}
	for _, s := range []struct {
		to, by string
		proto  uint8
		want   bool
	}{
		{"10.96.0.10:53", "10.10.0.24:5353", 17, true},
		{"10.96.0.10:53", "10.10.0.24:5353", 6, false},
		{"10.96.0.10:53", "10.10.1.6:5353", 17, false},
		{"10.96.0.11:53", "10.10.0.24:5353", 17, false},
		{"192.168.77.102:30053", "10.10.0.24:5353", 17, true},
		{"192.168.77.102:30054", "10.10.0.24:5353", 17, false},
	} {
		to, by := at(s.to), at(s.by)
		c := &conntrack.Conn{
			Orig:  conntrack.Direction{Tuple: conntrack.Tuple{Dst: to.Addr(), DstPort: to.Port(), Proto: s.proto}},
			Reply: conntrack.Direction{Tuple: conntrack.Tuple{Src: by.Addr(), SrcPort: by.Port(), Proto: s.proto}},
		}
		if got := wentPath(c, paths); got != s.want {
			t.Errorf("%s by %s, protocol %d: %v", s.to, s.by, s.proto, got)
		}
	}
}
