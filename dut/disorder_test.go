package dut_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// TestSameAsOpenVSwitchInDisorder: TestSameAsOpenVSwitch without conversations.
// Each packet is drawn for itself, from so few addresses, ports and numbers that
// they meet: most make no sense where they come. ANTRAIL_SEQUENCE=FILE plays a
// file instead, in the form of a vector, of which rx and warp steps are taken.
func TestSameAsOpenVSwitchInDisorder(t *testing.T) {
	seed, n := seedAndSteps(t, 600)
	if file := os.Getenv("ANTRAIL_SEQUENCE"); file != "" {
		playSequence(t, file)
		return
	}
	p := newPair(t, seed, serviceFlows(), false)
	t.Logf("ANTRAIL_SEED=%d", seed)
	var seen [][]byte
	for range n {
		if p.IntN(20) == 0 {
			p.warp(p.waits())
			continue
		}
		b := p.stray(seen)
		if seen = append(seen, b); len(seen) > 32 {
			seen = seen[1:]
		}
		p.pass(1+p.IntN(2), b)
	}
	t.Logf("differences, all meant: %v", p.why)
}

func playSequence(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v ctvectors.Vector
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	p := newPair(t, 0, v.Flows, false)
	for i := range v.Steps {
		switch s := &v.Steps[i]; s.Op {
		case "rx":
			b, err := hex.DecodeString(s.Hex)
			if err != nil {
				t.Fatalf("%s: step %d: %v", file, i, err)
			}
			p.pass(int(s.Port), b)
		case "warp":
			p.warp(int(s.MS))
		}
	}
	t.Logf("%s: %d steps; differences, all meant: %v", file, len(v.Steps), p.why)
}

// stray is a packet without relation to any other, or an error about one of
// those seen; one of 32 is cut off somewhere.
func (p *pair) stray(seen [][]byte) []byte {
	hosts := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.96.0.10"}
	o := packettest.Options{Src: p.addr(hosts[p.IntN(4)]), Dst: p.addr(hosts[p.IntN(4)]), Payload: make([]byte, []int{0, 0, 1, 100}[p.IntN(4)])}
	var b []byte
	switch kind := p.IntN(20); {
	case kind == 0 && len(seen) > 0:
		b = p.errorAbout(seen[p.IntN(len(seen))])
	case kind < 3:
		b = packettest.ICMP4(o, []uint8{8, 0, 13, 14, 5}[p.IntN(5)], 0, uint32(1+p.IntN(2))<<16)
	case kind < 8:
		b = p.strayPorts(packettest.UDP4(o))
	default:
		b = p.strayTCP(o)
	}
	if p.IntN(32) == 0 {
		b = b[:packet.EthernetLen+p.IntN(len(b)-packet.EthernetLen)]
	}
	return b
}

// strayTCP is a segment with random flags and numbers.
func (p *pair) strayTCP(o packettest.Options) []byte {
	const f, s, r, push, a, u = packet.TCPFin, packet.TCPSyn, packet.TCPRst, packet.TCPPsh, packet.TCPAck, packet.TCPUrg
	o.Seq = []uint32{1000, 1001, 1002, 2000, 100000, 1 << 31}[p.IntN(6)]
	o.Ack = []uint32{0, 1000, 1001, 1002, 2001, 100001}[p.IntN(6)]
	b := packettest.TCP4(o)
	h := packet.TCP(b[packet.ParseLayers(b).L4:])
	h.SetFlags([]uint16{s, s, s | a, s | a, a, a, a | push, a | f, r, r | a, 0, s | f, s | r, f | push | u, f}[p.IntN(15)])
	h.SetWindow([]uint16{0, 1, 512, 65535}[p.IntN(4)])
	return p.strayPorts(b)
}

// strayPorts writes random ports over those of a TCP segment or UDP datagram;
// its checksum is right, but for one of 32.
func (p *pair) strayPorts(b []byte) []byte {
	ports := []uint16{1024, 1025, 80, 53, 0}
	l := packet.ParseLayers(b)
	h := packet.UDP(b[l.L4:]) // TCP has its ports at the same place
	h.SetSrcPort(ports[p.IntN(5)])
	h.SetDstPort(ports[p.IntN(5)])
	l.SetL4Checksum(b)
	if p.IntN(32) == 0 {
		b[len(b)-1] ^= 0x10
	}
	return b
}
