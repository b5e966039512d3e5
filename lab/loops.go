package lab

import (
	"fmt"
	"net"

	"github.com/antrail/antrail/internal/nft"
)

// What a Node's switch sends out at certain ports is for a program to inspect and
// to give back at others. A lab has no such program: a rule of nftables leads every
// frame from the one to the other as it is.

// loops are the pairs of ports: out of the switch, back into it.
var loops = [][2]string{
	{"antrea-tc-tap0", "antrea-tc-tap1"}, // a TrafficControl's redirect, in examples/web-app
	{"antrea-l7-tap0", "antrea-l7-tap1"}, // application-layer policies
}

// loopTable is the lab's own table, in the family netdev.
const loopTable = "antrail-lab"

// makeLoops joins the pairs that a Node has. Its agent has made the ports.
func (l *Lab) makeLoops(node string) error {
	if err := l.namespace(node).Do(joinPairs); err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// joinPairs joins the pairs whose links are in the calling thread's namespace. A
// chain goes with its link, so that after an agent's restart all is made anew.
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
