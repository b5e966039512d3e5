package dataplane_test

import (
	"bytes"
	"net"
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

// fromStack gives a frame of the gateway the mark that the Node's stack would give it: every
// other sender's port marks its packets. A marked frame comes from the gateway's address,
// because a tap has it from none other.
func (w *twins) fromStack(o *offer) {
	l := packet.ParseLayers(o.frame)
	if w.program.Names.Port(o.port) != "antrea-gw0" || l.L4 == 0 || l.L4+1 >= len(o.frame) || o.frame[l.L4+1]&1 == 0 {
		return
	}
	o.mark, o.frame = 0x80000000, bytes.Clone(o.frame)
	for _, h := range w.hosts {
		if h.port == o.port {
			mac, err := net.ParseMAC(h.mac)
			if err != nil {
				w.Fatal(err)
			}
			copy(o.frame[6:], mac)
			return
		}
	}
}

// showingMark is a frame with its mark as the programs see it.
func showingMark(o *offer) []byte {
	b := bytes.Clone(o.frame)
	src := onStack{}.OffloadSource([6]byte(b[6:]), o.mark)
	copy(b[6:], src[:])
	return b
}

// gatewaySource is tunnelSource with another of the hosts behind the gateway. IPv4 packets to
// that host have a mark.
func gatewaySource(t *testing.T, over6 bool) twinSource {
	s := tunnelSource(t, over6)
	flows := strings.ReplaceAll(rewrites, "output:2", toNode(over6)+",output:9")
	flows = strings.ReplaceAll(flows, "set_field:02:00:00:00:00:01->eth_dst,output:1", "set_field:0x61->pkt_mark,output:8")
	flows += "\n\ttable=2,priority=7,pkt_mark=0x80000000/0x80000000,ip actions=set_field:16->nw_tos,goto_table:3"
	s.src.Flows = parse.Text("gateway", strings.ReplaceAll(flows, "output:1", "set_field:02:00:00:00:00:01->eth_dst,output:8"))
	s.src.Ports = parse.Text("ports", " 3(p3)\n 4(p4)\n 8(antrea-gw0)\n 9(antrea-tun0)\n")
	for i := range s.hosts {
		if s.hosts[i].port == 1 {
			s.hosts[i].port = 8
		}
	}
	return s
}
