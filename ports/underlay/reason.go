package underlay

import (
	"net/netip"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// counters is a driver's counters and those of a tunnel.
type counters struct {
	ports.Counters
	own    [ports.NumTunnelReasons]atomic.Uint64
	tunnel [tunnel.NumReasons]atomic.Uint64
}

// refuseSource counts datagrams of one message of n bytes from an unknown source.
func (c *counters) refuseSource(source netip.Addr, head []byte, n, datagrams int) {
	c.countDrop(ports.RxUnknownNode, datagrams)
	c.Keep(ports.RxUnknownNode.String(), source, head, n)
}

// refuse counts a Node's datagram with a wrong tunnel header.
func (c *counters) refuse(why tunnel.Reason, source netip.Addr, datagram []byte) {
	c.countRefusal(why)
	c.Keep(why.String(), source, datagram, len(datagram))
}

// refuseForeign counts a datagram of a Node that sends in the name of another Node's pod.
func (c *counters) refuseForeign(source netip.Addr, datagram []byte) {
	c.countDrop(ports.RxForeign, 1)
	c.Keep(ports.RxForeign.String(), source, datagram, len(datagram))
}

// loseFrame counts a frame that cannot reach its destination.
func (c *counters) loseFrame(r ports.TunnelReason, f *packet.Frame) {
	c.countDrop(r, 1)
	c.Keep(r.String(), f.Tunnel.Dst, f.Bytes(), f.Len())
}

// refuseFrame counts a frame that every driver would refuse.
func (c *counters) refuseFrame(r ports.Reason, f *packet.Frame) {
	c.unsent(r, f.Tunnel.Dst, f.Bytes(), f.Len())
}

// unsent counts an unsent frame for a Node. head is its beginning.
func (c *counters) unsent(r ports.Reason, node netip.Addr, head []byte, length int) {
	c.CountDrop(r, 1)
	c.Keep(r.String(), node, head, length)
}

func (c *counters) countDrop(r ports.TunnelReason, n int) { c.own[r].Add(uint64(n)) }

func (c *counters) countRefusal(r tunnel.Reason) { c.tunnel[r].Add(1) }

// kernelDrops counts the datagrams that the kernel dropped at a receiving socket since the last
// call. The kernel's own number wraps. The caller holds rxMu.
func (c *counters) kernelDrops(r *receiver) {
	if now, err := socketDrops(r.fd); err == nil {
		c.CountDrop(ports.RxRingFull, int(now-r.seen))
		r.seen = now
	}
}

func (c *counters) stats() ports.Stats {
	s := c.Counters.Stats()
	for r := range c.own {
		if n := c.own[r].Load(); n != 0 {
			s.Reasons[ports.TunnelReason(r).String()] += n
			if ports.TunnelReason(r) < ports.TxNoNode {
				s.RxDropped += n
			} else {
				s.TxDropped += n
			}
		}
	}
	for r := range c.tunnel {
		if n := c.tunnel[r].Load(); n != 0 {
			s.Reasons[tunnel.Reason(r).String()] += n
			s.RxErrors += n
		}
	}
	return s
}
