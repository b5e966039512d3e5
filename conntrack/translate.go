package conntrack

import (
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Writing a connection's translation into a frame (tuple/rewrite.go changes the
// headers).

// translate rewrites the packet from its tuple to the tuple on the connection's other side. It
// reports whether it has rewritten the packet.
func (v *visit) translate() bool {
	if !v.rewrite {
		return false
	}
	b := v.f.Bytes()
	to := &v.m.seen
	if v.Related {
		v.translateError(b, to)
		return true
	}
	partial := v.f.Offload.ChecksumPartial
	v.Packet.Rewrite(b, &v.Key, to, partial)
	if v.Key.Proto == packet.ProtoSCTP && !partial {
		v.l.SetL4Checksum(b)
	}
	return true
}

// translateError rewrites an ICMP error (CT-33). The quoted packet becomes the packet as its
// sender sent it. If NAT translates a side, the error's own address of that side is translated
// too, even if a router has sent the error.
func (v *visit) translateError(b []byte, to *tuple.Key) {
	sent := v.Key.Reversed()
	v.Packet.Rewrite(b, &sent, &v.e.Keys[1-v.dir], false)
	outer := tuple.Key{Family: to.Family}
	outer.ReadAddresses(b[v.l.L3:])
	moved := outer
	if to.Src != v.Key.Src {
		moved.Src = to.Src
	}
	if to.Dst != v.Key.Dst {
		moved.Dst = to.Dst
	}
	tuple.RewriteAddresses(b[v.l.L3:], &outer, &moved)
	v.l.SetL4Checksum(b)
	v.f.Offload.ChecksumPartial = false
}
