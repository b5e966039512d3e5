package underlay

import (
	"sync/atomic"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// reason is why this port, and no other driver, loses a frame. The list is
// closed.
type reason uint8

const (
	rxUnknownNode reason = iota // from here on: received
	rxOuter
	txNoNode // from here on: to be sent
	txUnknownNode
	txOtherFamily
	txNoRoute
	numReasons
)

var sentences = [numReasons]string{
	rxUnknownNode: "outer source is not a known Node",
	rxOuter:       "outer headers or their checksums are wrong",
	txNoNode:      "frame for the tunnel names no Node",
	txUnknownNode: "tunnel destination is not a known Node",
	txOtherFamily: "tunnel destination is not of the family of the Node's own address",
	txNoRoute:     "no route to the Node",
}

// counters is the drivers' counters and those of a tunnel.
type counters struct {
	ports.Counters
	own    [numReasons]atomic.Uint64
	tunnel [tunnel.NumReasons]atomic.Uint64
}

func (c *counters) lost(r reason, n int) { c.own[r].Add(uint64(n)) }

func (c *counters) refused(r tunnel.Reason) { c.tunnel[r].Add(1) }

// kernelDrops counts the datagrams that the kernel dropped at a receiving
// socket since the last call; its own number wraps. Callers hold rxMu.
func (c *counters) kernelDrops(r *receiver) {
	if now, err := socketDrops(r.fd); err == nil {
		c.Lost(ports.RxRingFull, int(now-r.seen))
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
