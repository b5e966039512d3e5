package lab

import (
	"fmt"
	"net"

	"github.com/antrail/antrail/internal/nft"
)

// At certain ports, a Node's switch hands frames to a program for inspection, and gets them
// back at others. A lab has no such program: an nftables rule forwards every frame from one
// port to the other.

// loops are the pairs of ports: out of the switch, back into it.
var loops = [][2]string{
	{"antrea-tc-tap0", "antrea-tc-tap1"}, // a TrafficControl's redirect, in examples/web-app
	{"antrea-l7-tap0", "antrea-l7-tap1"}, // application-layer policies
}

// loopTable is the lab's own table, in the family netdev.
const loopTable = "antrail-lab"

// makeLoops joins a Node's pairs of ports, which its agent has made.
func (l *Lab) makeLoops(node string) error {
	if err := l.namespace(node).Do(joinPairs); err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// joinPairs joins the pairs whose links are in the calling thread's namespace. A chain goes
// with its link, so joinPairs makes all of them again after an agent's restart.
func joinPairs() error {
	var s nft.Script
	t := s.Table("netdev", loopTable)
	t.Remove()
	joined := 0
	for _, p := range loops {
		out, back := p[0], p[1]
		if !isLink(out) || !isLink(back) {
			continue
		}
		if joined++; joined == 1 {
			t.Add("ports that lead back into the switch")
		}
		t.Chain(out, "filter", fmt.Sprintf("ingress device %q", out), nft.Filter)
		t.Rule(out, fmt.Sprintf("fwd to %q", back))
	}
	return s.Run()
}

func isLink(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}
