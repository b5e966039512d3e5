package dut_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// The same random packets go through Open vSwitch's userspace datapath and
// through this switch, and everything that leaves must be the same, and the
// connections too, with their timeouts. Where it is not, the difference must be
// one of the numbered ones (RULES.md of package conntrack); then both sides
// forget the connections and go on. The run is always the same; ANTRAIL_SEED
// makes another, ANTRAIL_STEPS a longer one.

// stamp writes what ct() said over the MAC addresses.
const stamp = "move:NXM_NX_CT_STATE[0..15]->NXM_OF_ETH_SRC[0..15],move:NXM_NX_CT_LABEL[0..31]->NXM_OF_ETH_SRC[16..47]," +
	"move:NXM_NX_CT_MARK[]->NXM_OF_ETH_DST[0..31],move:NXM_NX_CT_ZONE[]->NXM_OF_ETH_DST[32..47]"

// serviceFlows are a Service in the manner of Antrea: lookups in two zones, DNAT
// in the first, a policy that commits again, SNAT for one client in the second.
func serviceFlows() []string {
	tap := func(port int) string { return fmt.Sprintf("clone(%s,output:%d)", stamp, port) }
	return []string{
		"table=0,priority=2,ip,nw_dst=10.9.9.9 actions=ct(table=1,zone=2,nat)",
		"table=0,priority=1,ip actions=resubmit(,1)",
		"table=1,ip actions=ct(table=2,zone=1,nat)",
		"table=2,priority=9,ct_state=+inv+trk,ip actions=" + tap(11),
		"table=2,priority=8,ct_state=+new+trk,tcp,nw_dst=10.96.0.10,tp_dst=80 actions=" + tap(11) +
			",ct(commit,zone=1,nat(dst=10.0.0.2:8080),exec(set_field:0x10->ct_mark),table=3)",
		"table=2,priority=8,ct_state=+new+trk,udp,nw_dst=10.96.0.10,tp_dst=53 actions=" + tap(11) +
			",ct(commit,zone=1,nat(dst=10.0.0.2:5353),exec(set_field:0x10->ct_mark),table=3)",
		"table=2,priority=1,ip actions=" + tap(11) + ",resubmit(,3)",
		"table=3,priority=9,ct_state=+new+trk,ip actions=" + tap(12) + ",ct(commit,zone=1,exec(set_field:0x7/0xff->ct_label),table=4)",
		"table=3,priority=1,ip actions=" + tap(12) + ",resubmit(,4)",
		"table=4,priority=9,ct_state=+new+trk,ct_mark=0x10/0x10,ip,nw_src=10.0.0.3 actions=" + tap(13) + ",ct(commit,zone=2,nat(src=10.9.9.9),table=5)",
		"table=4,priority=8,ct_state=-new-rpl+trk,ct_mark=0x10/0x10,ip,nw_src=10.0.0.3 actions=" + tap(13) + ",ct(zone=2,nat,table=5)",
		"table=4,priority=1,ip actions=" + tap(13) + ",resubmit(,5)",
		"table=5,ip actions=" + stamp + ",output:14",
	}
}

// pair is the two switches.
type pair struct {
	*testing.T
	*rand.Rand
	ovs   *reference
	ours  *peer
	v6    bool
	talks []*talk
	why   map[string]int // explained differences
	dump  []string       // both switches' connections, when they were last compared
	pasts map[string]*past
	trail []string // packets since the connections were forgotten, and what both said first
}

// talk is a conversation: what its two ends saw last.
type talk struct {
	proto            uint8
	src, dst         string
	sport, dport     uint16
	isn              uint32
	length           int
	atServer, atHome []byte
}

func newPair(t *testing.T, seed uint64, flows []string, v6 bool) *pair {
	if v6 {
		for i := range flows {
			flows[i] = ctvectors.FlowV6(flows[i])
		}
	}
	ovs := newReference(t)
	ovs.load(flows)
	p := &pair{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), ovs: ovs, ours: newPeer(t), v6: v6, why: map[string]int{}, pasts: map[string]*past{}}
	p.ours.must(map[string]any{"op": "reset", "flows": flows})
	return p
}

// newTalk begins a conversation between a few addresses and ports.
func (p *pair) newTalk() *talk {
	t := &talk{proto: []uint8{packet.ProtoTCP, packet.ProtoTCP, packet.ProtoUDP, packet.ProtoICMP}[p.IntN(4)]}
	t.src, t.dst = []string{"10.0.0.1", "10.0.0.3", "10.0.0.2"}[p.IntN(3)], []string{"10.96.0.10", "10.96.0.10", "10.0.0.2", "10.0.0.1"}[p.IntN(4)]
	t.sport = []uint16{1024, 1025, 500, 8080}[p.IntN(4)]
	t.dport = map[uint8][]uint16{packet.ProtoTCP: {80, 8080}, packet.ProtoUDP: {53, 5353}, packet.ProtoICMP: {1, 2}}[t.proto][p.IntN(2)]
	t.isn, t.length = []uint32{1000, 1 << 31, 1<<32 - 1}[p.IntN(3)], []int{0, 0, 1, 100}[p.IntN(4)]
	return t
}

// first is a conversation's first packet, with the given flags if it is TCP.
func (p *pair) first(t *talk, flags uint16) []byte {
	if p.IntN(20) == 0 && t.proto == packet.ProtoTCP {
		t.isn += 100_000
	}
	o := packettest.Options{
		Src: p.addr(t.src), Dst: p.addr(t.dst), SrcPort: t.sport, DstPort: t.dport, TCPFlags: flags,
		Seq: t.isn, ICMPID: t.dport, Window: []uint16{65535, 512, 1}[p.IntN(3)],
		Payload: make([]byte, t.length),
	}
	if flags&packet.TCPAck != 0 {
		o.Ack = 77
	}
	build := map[uint8][2]func(packettest.Options) []byte{
		packet.ProtoTCP: {packettest.TCP4, packettest.TCP6}, packet.ProtoUDP: {packettest.UDP4, packettest.UDP6},
		packet.ProtoICMP: {packettest.ICMPEcho4, packettest.ICMPEcho6},
	}[t.proto]
	if p.v6 {
		return build[1](o)
	}
	return build[0](o)
}

// next is the next packet of a conversation and the end that sends it.
func (p *pair) next(t *talk) (b []byte, fromServer bool) {
	flags := []uint16{packet.TCPAck, packet.TCPAck, packet.TCPAck | packet.TCPPsh, packet.TCPFin | packet.TCPAck, packet.TCPRst}[p.IntN(5)]
	switch {
	case t.atServer != nil && p.IntN(2) == 0:
		if l := packet.ParseLayers(t.atServer); l.Proto == packet.ProtoTCP && packet.TCP(t.atServer[l.L4:]).Flags() == packet.TCPSyn {
			flags = packet.TCPSyn | packet.TCPAck
		}
		return packettest.Answer(t.atServer, flags), true
	case t.atHome != nil && t.proto != packet.ProtoICMP && p.IntN(8) > 0:
		return packettest.Answer(t.atHome, flags), false
	}
	flags = packet.TCPSyn
	if p.IntN(16) == 0 {
		flags = packet.TCPAck // the middle of one
	}
	return p.first(t, flags), false
}

// spoil changes a packet in a way that a wire, a bug or an attacker would.
func (p *pair) spoil(b []byte) []byte {
	l := packet.ParseLayers(b)
	if l.L4 == 0 || l.End > len(b) {
		return b
	}
	segment := b[l.L4:l.End]
	switch kind := p.IntN(8); {
	case l.Proto == packet.ProtoTCP && kind < 5:
		h := packet.TCP(segment)
		off := []uint32{1, 1<<32 - 1, 100, 70000, 1 << 30, 1 << 31}[p.IntN(6)]
		switch kind {
		case 0:
			h.SetSeq(h.Seq() + off)
		case 1:
			h.SetAck(h.Ack() + off)
		case 2:
			h.SetFlags(uint16(p.IntN(64)))
		case 3:
			h.SetWindow(uint16(p.IntN(3)))
		case 4:
			h.SetSrcPort(0)
		}
		l.SetL4Checksum(b)
	case kind == 5:
		return b[:l.L4+p.IntN(l.End-l.L4)]
	default:
		segment[p.IntN(len(segment))] ^= 0x10
	}
	return b
}

// stranger is a TCP segment out of nowhere, in either direction between a few
// ends and near a few numbers, so that it meets connections.
func (p *pair) stranger() []byte {
	t := p.newTalk()
	near := []uint32{0, 1, 2, 100, 3999, 70_000, 1 << 30}
	o := packettest.Options{
		Src: p.addr(t.src), Dst: p.addr(t.dst), SrcPort: t.sport, DstPort: []uint16{80, 8080}[p.IntN(2)],
		Seq: t.isn + near[p.IntN(len(near))], Ack: 1000 + near[p.IntN(len(near))], TCPFlags: uint16(p.IntN(64)),
		Window: []uint16{65535, 512, 0}[p.IntN(3)], Payload: make([]byte, t.length),
	}
	if p.IntN(2) == 0 {
		o.Src, o.Dst, o.SrcPort, o.DstPort = o.Dst, o.Src, o.DstPort, o.SrcPort
		o.Seq, o.Ack = o.Ack, o.Seq
	}
	if p.v6 {
		return packettest.TCP6(o)
	}
	return packettest.TCP4(o)
}

// errorAbout is an ICMP error that quotes a packet.
func (p *pair) errorAbout(b []byte) []byte {
	o := packettest.Options{Src: p.addr("10.0.0.9")}
	l := packet.ParseLayers(b)
	if p.v6 || l.L4 == 0 {
		return b
	}
	o.Dst = packet.IPv4(b[l.L3:]).Src()
	return packettest.ICMPError4(o, packet.ICMPUnreachable, 1, b[l.L3:], 28+p.IntN(2)*(len(b)-l.L3-28))
}

// step is one packet through both.
func (p *pair) step() {
	if len(p.talks) < 6 || p.IntN(40) == 0 {
		p.talks = append(p.talks, p.newTalk())
		p.talks = p.talks[max(0, len(p.talks)-6):]
	}
	t := p.talks[p.IntN(len(p.talks))]
	b, fromServer := p.next(t)
	switch p.IntN(16) {
	case 0:
		b = p.spoil(b)
	case 1:
		b = p.errorAbout(b)
	case 2:
		b = p.stranger()
	}
	port := 1
	if fromServer {
		port = 2
	}
	ours, same := p.pass(port, b)
	if same && len(ours) > 0 {
		seen := frameOf(p.T, ours[len(ours)-1])
		if fromServer {
			t.atHome = seen
		} else {
			t.atServer = seen
		}
	}
}

// pass is compare, and notes the packet.
func (p *pair) pass(port int, b []byte) (ours []ctvectors.Output, same bool) {
	p.trail = append(p.trail, fmt.Sprintf("port %d %x", port, b))
	return p.compare(port, b)
}

// both puts a packet into both and tells what left each.
func (p *pair) both(port int, b []byte) (theirs, ours []ctvectors.Output) {
	ours = taps(p.T, p.ours.must(map[string]any{"op": "rx", "port": port, "hex": hex.EncodeToString(b)}).Out)
	return p.ovs.receive(port, b), ours
}

// waits is a random time in milliseconds.
func (p *pair) waits() int { return []int{100, 5000, 29_500, 31_000, 61_000, 1_000_000}[p.IntN(6)] }

// warp turns both clocks.
func (p *pair) warp(ms int) {
	p.trail = append(p.trail, fmt.Sprintf("%d ms", ms))
	p.ovs.Warp(ms)
	p.ours.must(map[string]any{"op": "warp", "ms": ms})
	if ms > 1000 { // what has expired still holds its tuple in Open vSwitch until that comes to it
		if theirs, ours := p.connections(); !slices.Equal(theirs, ours) {
			p.failConnections(theirs, ours)
		}
		p.forget("time")
	}
}

// seedAndSteps is what a random run begins from and how long it is.
func seedAndSteps(t *testing.T, byDefault int) (seed uint64, n int) {
	seed, n = 7, byDefault
	for name, to := range map[string]func(uint64){
		"ANTRAIL_SEED": func(v uint64) { seed = v }, "ANTRAIL_STEPS": func(v uint64) { n = int(v) },
	} {
		if text := os.Getenv(name); text != "" {
			v, err := strconv.ParseUint(text, 0, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			to(v)
		}
	}
	return seed, n
}

func TestSameAsOpenVSwitch(t *testing.T) {
	seed, n := seedAndSteps(t, 600)
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, seed, serviceFlows(), v6)
			t.Logf("ANTRAIL_SEED=%d", seed)
			for range n {
				if p.IntN(30) == 0 {
					p.warp(p.waits())
				} else {
					p.step()
				}
			}
			t.Logf("differences, all meant: %v", p.why)
		})
	}
}

// addr is an address, in the family of the run.
func (p *pair) addr(text string) netip.Addr {
	a := netip.MustParseAddr(text)
	if p.v6 {
		return ctvectors.AddrV6(a)
	}
	return a
}
