package underlay

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// reason is why this port, and no other driver, loses a frame. The list is
// closed.
type reason uint8

const (
	rxUnknownNode reason = iota // from here on: received
	rxOuter
	rxForeign
	txNoNode // from here on: to be sent
	txUnknownNode
	txOtherFamily
	txNoRoute
	txSilent
	numReasons
)

var sentences = [numReasons]string{
	rxUnknownNode: "outer source is not a known Node",
	rxOuter:       "outer headers or their checksums are wrong",
	rxForeign:     "inner source is in another Node's pod range",
	txNoNode:      "frame for the tunnel names no Node",
	txUnknownNode: "tunnel destination is not a known Node",
	txOtherFamily: "tunnel destination is not of the family of the Node's own address",
	txNoRoute:     "no route to the Node",
	txSilent:      "the Node does not answer ARP or NDP",
}

// counters is the drivers' counters and those of a tunnel.
type counters struct {
	ports.Counters
	own    [numReasons]atomic.Uint64
	tunnel [tunnel.NumReasons]atomic.Uint64
}

// Reasons are the texts of the reasons that only this port has.
func Reasons() (all []string) {
	all = append(all, sentences[:]...)
	for r := tunnel.None + 1; r < tunnel.NumReasons; r++ {
		all = append(all, r.String())
	}
	return all
}

// Sends says whether a text is of a reason of this port not to send.
func Sends(text string) bool { return slices.Index(sentences[:], text) >= int(txNoNode) }

// refuseSource counts datagrams of one message, of n bytes, from nobody known.
func (c *counters) refuseSource(source netip.Addr, head []byte, n, datagrams int) {
	c.countDrop(rxUnknownNode, datagrams)
	c.Keep(sentences[rxUnknownNode], source, head, n)
}

// refuse counts a datagram of a Node whose tunnel header is wrong.
func (c *counters) refuse(why tunnel.Reason, source netip.Addr, datagram []byte) {
	c.countRefusal(why)
	c.Keep(why.String(), source, datagram, len(datagram))
}

// refuseForeign counts a datagram of a Node that sends in the name of a pod that it
// does not have.
func (c *counters) refuseForeign(source netip.Addr, datagram []byte) {
	c.countDrop(rxForeign, 1)
	c.Keep(sentences[rxForeign], source, datagram, len(datagram))
}

// loseFrame counts a frame that cannot go where it is to go.
func (c *counters) loseFrame(r reason, f *packet.Frame) {
	c.countDrop(r, 1)
	c.Keep(sentences[r], f.Tunnel.Dst, f.Bytes(), f.Len())
}

// refuseFrame counts a frame that no driver would send.
func (c *counters) refuseFrame(r ports.Reason, f *packet.Frame) {
	c.unsent(r, f.Tunnel.Dst, f.Bytes(), f.Len())
}

// unsent counts a frame for a Node that is not sent, of which head is the beginning.
func (c *counters) unsent(r ports.Reason, node netip.Addr, head []byte, length int) {
	c.CountDrop(r, 1)
	c.Keep(r.String(), node, head, length)
}

// DropSample is the last datagram that was dropped for a reason, with its tunnel header and
// its sender. Or it is the last frame that was not sent, with its Node.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

func (c *counters) countDrop(r reason, n int) { c.own[r].Add(uint64(n)) }

func (c *counters) countRefusal(r tunnel.Reason) { c.tunnel[r].Add(1) }

// kernelDrops counts the datagrams that the kernel dropped at a receiving
// socket since the last call; its own number wraps. Callers hold rxMu.
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
			s.Reasons[sentences[r]] += n
			if reason(r) < txNoNode {
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
