package dataplane_test

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/ports/tap"
)

// onStack is a memory port to a Node's stack, which sees marks as a tap shows them.
type onStack struct{ onLink }

func (onStack) OffloadSource(src [6]byte, mark uint32) [6]byte {
	if mark != 0 {
		return tap.MarkMAC(mark)
	}
	return src
}

// Transmit shows the frames' marks.
func (p onStack) Transmit(batch []*packet.Frame) int {
	for _, f := range batch {
		src := p.OffloadSource([6]byte(f.Bytes()[6:]), f.Mark)
		copy(f.Bytes()[6:], src[:])
	}
	return p.onLink.Transmit(batch)
}

// linkedStack is such a port, as a switch with a kernel, or without, gets it.
func linkedStack(k *trial, no uint32, p *memory.Port) ports.Port {
	if k == nil {
		return onStack{onLink{Port: p}}
	}
	k.stacks[no] = true
	return onStack{onLink{p, linkOf(no)}}
}

// gatewaySource is tunnelSource with another of the hosts behind the gateway. What goes
// there over IPv4 has a mark.
func gatewaySource(t *testing.T) twinSource {
	s := tunnelSource(t)
	flows := strings.ReplaceAll(rewrites, "output:2", "set_field:192.168.77.101->tun_dst,output:9")
	flows = strings.ReplaceAll(flows, "set_field:02:00:00:00:00:01->eth_dst,output:1", "set_field:0x61->pkt_mark,output:8")
	s.src.Flows = parse.Text("gateway", strings.ReplaceAll(flows, "output:1", "set_field:02:00:00:00:00:01->eth_dst,output:8"))
	s.src.Ports = parse.Text("ports", " 3(p3)\n 4(p4)\n 8(antrea-gw0)\n 9(antrea-tun0)\n")
	for i := range s.hosts {
		if s.hosts[i].port == 1 {
			s.hosts[i].port = 8
		}
	}
	return s
}
