package uplink

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
)

// TestFlowKeepsItsOrder: the last of coalesced segments does not overtake the
// others, which the card does not take.
func TestFlowKeepsItsOrder(t *testing.T) {
	node := netip.MustParseAddr("192.168.77.102")
	p := &Port{config: Config{Config: underlay.Config{Kind: tunnel.KindGRE, Local: netip.MustParseAddr("192.168.77.101"), MTU: 1430}}}
	ways := map[netip.Addr]way{node: {mtu: 1500}}
	frame := func(sport uint16, segment uint16) *packet.Frame {
		f := frameOf(pt.TCP4(pt.Options{SrcPort: sport, Payload: []byte("segment")}))
		f.Offload.SegmentSize, f.Tunnel = segment, packet.Tunnel{Dst: node}
		return f
	}
	before, coalesced, end, other := frame(1000, 0), frame(1000, 4), frame(1000, 0), frame(2000, 0)
	size := other.Len()
	card, rest, bytes := p.sorted([]*packet.Frame{before, coalesced, end, other}, ways)
	if !slices.Equal(card, []*packet.Frame{before, other}) || !slices.Equal(rest, []*packet.Frame{coalesced, end}) {
		t.Errorf("%d frames by the card, %d the whole way", len(card), len(rest))
	}
	if bytes != 2*size || end.Len() != size || other.Len() <= size {
		t.Errorf("%d bytes by the card; the last segment has %d, the other frame %d", bytes, end.Len(), other.Len())
	}
}
