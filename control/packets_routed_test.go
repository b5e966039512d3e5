package control

import (
	"bytes"
	"slices"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables/layout"
)

const routedPod = `
apiVersion: v1
kind: Pod
metadata: {name: routed, namespace: default, uid: u1}
spec: {nodeName: node-a}
`

// routedMAC is the address of all Pods with layer 3 attachment.
var routedMAC = [6]byte{0, 0, 0, 0, 0, 2}

// fromRouted sends a packet from such a Pod. All its packets go to the switch's end of its link.
func (w *wire) fromRouted(text string, link [6]byte) []string {
	w.t.Helper()
	b := w.frame("spare", text)
	copy(b, link[:])
	copy(b[6:], routedMAC[:])
	w.inject("spare", b)
	w.sw.Poll()
	return w.collect()
}

// TestRoutedPodByPackets: a Pod with layer 3 attachment sends everything to its own link. It still reaches Pods
// of this Node and others, the Node and the outside, and they reach it (V-06, V-16).
func TestRoutedPodByPackets(t *testing.T) {
	w := newWire(t, routedPod)
	w.plug(cluster.SwitchPort{Name: "spare", OFPort: 13, Pod: cluster.Name{Namespace: "default", Name: "routed"}, MAC: routedMAC, Routed: true}, "u1")
	link := layout.LinkMAC(13)
	for dst, port := range map[string]string{
		"10.10.0.12:80": "client-a", "10.10.1.11:80": "tunnel(192.168.1.2)", "10.10.0.1:80": "gateway", "192.0.2.9:80": "gateway", "10.10.0.77:80": "",
	} {
		what := "udp 10.10.0.77:1000 > " + dst
		var want []string
		if port != "" {
			want = []string{port + " " + what}
		}
		if got := w.fromRouted(what, link); !slices.Equal(got, want) {
			t.Errorf("%s leaves by %q, want %q", what, got, want)
		}
	}
	for what, to := range map[string][6]byte{"udp 10.10.0.77:1000 > 10.10.0.12:80": layout.LinkMAC(14), "udp 10.10.0.12:1000 > 10.10.0.11:80": link} {
		if got := w.fromRouted(what, to); len(got) > 0 {
			t.Errorf("forged: %s leaves by %q", what, got)
		}
	}
	for _, text := range []string{"web-a udp 10.10.0.11:1 > 10.10.0.77:80", "tunnel udp 10.10.1.11:1 > 10.10.0.77:80", "gateway udp 192.0.2.9:1 > 10.10.0.77:80"} {
		_, what, _ := bytes.Cut([]byte(text), []byte(" "))
		w.expect(text, "spare "+string(what))
	}
	w.inject("web-a", w.frame("web-a", "udp 10.10.0.11:1 > 10.10.0.77:80"))
	w.sw.Poll()
	f := w.ports["spare"].CollectAll()
	if len(f) != 1 {
		t.Fatalf("%d frames", len(f))
	}
	if e := packet.Ethernet(f[0].Bytes()); e.Src() != link || e.Dst() != routedMAC || packet.IPv4(f[0].Bytes()[packet.EthernetLen:]).TTL() != 63 {
		t.Errorf("the Pod gets %x", f[0].Bytes()[:34])
	}
	packet.Release(f)
}
