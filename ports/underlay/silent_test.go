package underlay

import (
	"bytes"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
)

// TestSilentNode: what the kernel takes for a Node that does not answer counts as dropped,
// with the frame, and is sent all the same.
func TestSilentNode(t *testing.T) {
	for family, nodes := range underlays {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) {
				ns := underlay(t, nodes)
				a := open(t, ns, Config{Kind: kind, Local: nodes[0], MTU: 1400, Peers: peersAt(nodes[1:]...)})
				b := open(t, ns, Config{Kind: kind, Local: nodes[1], MTU: 1400, Peers: peersAt(nodes[:1]...)})
				a.SetSilent(nodes[1:])
				frame := pt.UDP4(payload(200))
				if n := transmit(a, nodes[1], 7, frame); n != 0 {
					t.Errorf("%d sent", n)
				}
				const why = "the Node does not answer ARP or NDP"
				if s := a.Stats(); s.Reasons[why] != 1 || s.TxDropped != 1 || s.TxPackets != 0 {
					t.Errorf("%+v", s)
				}
				if x := a.DropSample(why); x.Source != nodes[1] || x.Length != len(frame) || !bytes.Equal(x.Head, frame[:ports.DropSampleLen]) {
					t.Errorf("%d bytes to %v: %x", x.Length, x.Source, x.Head)
				}
				if !ports.Sends(why) || ports.Sends("no such reason") || ports.Sends(ports.RxOuter.String()) {
					t.Error("which reasons are of sending is wrong")
				}
				packet.Release(receive(t, b, 1))
				a.SetSilent(nil)
				if n := transmit(a, nodes[1], 7, frame); n != 1 || a.Stats().TxPackets != 1 {
					t.Errorf("%d sent: %+v", n, a.Stats())
				}
				packet.Release(receive(t, b, 1))
			})
		}
	}
}
