package dataplane_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// TestCacheKeepsApart: packets that differ in one thing alone leave as they would without
// a cache, mark and bytes, though those like them in all else are replayed.
func TestCacheKeepsApart(t *testing.T) {
	for name, test := range map[string]struct {
		flows string
		frame func(i byte) (b []byte, mark uint32)
	}{
		"the mark with which it came": {"table=0,priority=2,pkt_mark=2,ip actions=output:3\ntable=0,priority=1,ip actions=output:2", func(i byte) ([]byte, uint32) {
			return packettest.UDP4(packettest.Options{}), uint32(i)
		}},
		"an address that becomes a mark": {"table=0,ip actions=move:NXM_OF_IP_SRC[0..7]->NXM_NX_PKT_MARK[0..7],output:2", func(i byte) ([]byte, uint32) {
			return packettest.UDP4(packettest.Options{Src: netip.AddrFrom4([4]byte{10, 0, 0, i})}), 0
		}},
		"the flow label": {"table=0,ipv6 actions=dec_ttl,output:2", func(i byte) ([]byte, uint32) {
			b := packettest.UDP6(packettest.Options{})
			b[17] = i
			return b, 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cached, plain := newCached(t, 0, test.flows), newCached(t, -1, test.flows)
			for range 5 {
				for i := range byte(3) {
					b, mark := test.frame(i)
					got, want := cached.passMarked(b, mark), plain.passMarked(b, mark)
					if got.port != want.port || got.mark != want.mark || !bytes.Equal(got.frame, want.frame) {
						t.Errorf("packet %d left as %+v, want %+v", i, got, want)
					}
				}
			}
			if n := cached.sw.Cache().Events[telemetry.CacheHit]; n < 6 {
				t.Errorf("%d packets were replayed: this proves little", n)
			}
		})
	}
}

// marked is a frame that left, and its mark.
type marked struct {
	port, mark uint32
	frame      []byte
}

// passMarked gives the switch a frame with a mark, and returns the one that left.
func (r *rig) passMarked(b []byte, mark uint32) (out marked) {
	r.Helper()
	f, one := packet.NewFrame(make([]byte, packet.Headroom+len(b)), nil), make([]*packet.Frame, 1)
	f.SetBytes(b)
	f.Mark = mark
	r.ports[1].Inject(f)
	r.sw.Poll()
	for no, p := range r.ports {
		if p.Collect(one) == 1 {
			out = marked{no, one[0].Mark, bytes.Clone(one[0].Bytes())}
			packet.Release(one)
		}
	}
	return out
}

// TestCacheAsksForWhatWasLookedUp: a walk whose ct() found no connection of what an entry
// had made of the packet is not replayed when there is one, though there is none of what
// the packet came as.
func TestCacheAsksForWhatWasLookedUp(t *testing.T) {
	r := newCached(t, 0, `
		table=0,priority=2,in_port=1,ip actions=set_field:10.0.0.9->nw_dst,ct(table=1,zone=5)
		table=0,priority=1,ip actions=ct(commit,zone=5,exec(set_field:0x7->ct_mark))
		table=1,priority=2,ct_mark=0x7,ip actions=output:3
		table=1,priority=1,ip actions=output:4`)
	const text = "udp,in_port=%d,nw_src=10.0.0.1,nw_dst=10.0.0.%d,udp_src=1000,udp_dst=53"
	for range 4 {
		r.wantPorts(r.send(fmt.Sprintf(text, 1, 2)), 4)
	}
	r.send(fmt.Sprintf(text, 2, 9))
	r.wantPorts(r.send(fmt.Sprintf(text, 1, 2)), 3)
}
