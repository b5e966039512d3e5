package afpacket

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/safchain/ethtool"
)

// withoutOffload turns the offloads of a link off, so that the kernel cuts
// segments and computes checksums itself.
func withoutOffload(t *testing.T, n *nstest.Namespace, link string) {
	t.Helper()
	n.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		have, err := e.Features(link)
		if err != nil {
			t.Fatal(err)
		}
		off := map[string]bool{}
		for _, name := range []string{
			"tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-tcp6-segmentation",
			"tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-udp-segmentation",
		} {
			if have[name] {
				off[name] = false
			}
		}
		if err := e.Change(link, off); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSegmentsAreTheKernels has the kernel cut frames, and compares byte by byte
// with what packet.Segments makes of them.
func TestSegmentsAreTheKernels(t *testing.T) {
	node, pod, p := pair(t, Options{})
	withoutOffload(t, node, "sw0")
	wire := nstest.OpenWire(t, pod, "eth0")
	payload := make([]byte, 20_001)
	for i := range payload {
		payload[i] = byte(i * i >> 3)
	}
	for name, build := range map[string]func(packettest.Options) []byte{
		"tcp4": packettest.TCP4, "tcp6": packettest.TCP6, "udp4": packettest.UDP4, "udp6": packettest.UDP6,
	} {
		if strings.HasPrefix(name, "udp") && p.Info().Carries&ports.CarriesUDP == 0 {
			continue // the switch cuts it
		}
		for _, flags := range []uint16{packet.TCPAck, packet.TCPAck | packet.TCPPsh | packet.TCPFin, packet.TCPAck | packet.TCPCwr | packet.TCPEce | packet.TCPPsh} {
			f := packettest.Undone(build(packettest.Options{
				EthDst: [6]byte(nstest.MAC("eth0")), ID: 65530, Seq: 1<<32 - 5000, Payload: payload, TCPFlags: flags,
				TCPOptions: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2},
			}), 1300)
			l := packet.ParseLayers(f.Bytes())
			s, ok := packet.NewSegments(f, &l)
			if !ok {
				t.Fatalf("%s: cannot be cut", name)
			}
			var want [][]byte
			for s.More() {
				g := packet.NewFrame(make([]byte, 2048), nil)
				s.Next(g)
				want = append(want, g.Bytes())
			}
			if p.Transmit([]*packet.Frame{f}) != 1 {
				t.Fatalf("%s: refused: %+v", name, p.Stats())
			}
			for i, w := range want {
				got, err := wire.Receive(time.Minute)
				if err != nil || got == nil {
					t.Fatalf("%s: %d segments of %d came: %v", name, i, len(want), err)
				}
				if !bytes.Equal(got, w) {
					t.Fatalf("%s, flags %#x, segment %d: the kernel's is\n%x, ours\n%x", name, flags, i, got[:min(len(got), 90)], w[:min(len(w), 90)])
				}
			}
		}
	}
}
