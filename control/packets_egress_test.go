package control

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// shapingFeature is the stories' Node with EgressTrafficShaping.
const shapingFeature = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "0a:00:00:00:00:02", ips: [10.10.0.1]}
  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}
  transportIPs: [192.168.1.1]
  serviceCIDRs: [10.96.0.0/12]
  features: {EgressTrafficShaping: true}
  ports:
    - {name: web-a, ofPort: 11, pod: default/web-a, mac: "0a:00:00:00:00:0b"}
    - {name: client-a, ofPort: 12, pod: default/client-a, mac: "0a:00:00:00:00:0c"}
`

// limitedEgress lets 100 kbit a second leave by one address, with a burst of 525 kbit.
const limitedEgress = `
---
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: limited}
spec: {appliedTo: {podSelector: {matchLabels: {app: web}}}, egressIP: 192.168.1.100, bandwidth: {rate: 100k, burst: 525k}}
status: {egressNode: node-a, egressIP: 192.168.1.100}
`

// TestBandwidthByPackets: the limit covers the packets from web-a that leave the cluster, and those from
// the tunnel for the same address. It does not cover another Pod's packets, nor packets from web-a to a
// Pod.
func TestBandwidthByPackets(t *testing.T) {
	w := newWire(t, shapingFeature+limitedEgress)
	leaves := func(text string, packets int) (n int) {
		for range packets {
			n += len(w.send(text))
		}
		return n
	}
	const fromWeb = "web-a udp 10.10.0.11:1000 > 192.0.2.9:80"
	// A packet has 106 bytes, 848 bits: 525,000 bits are 619 packets.
	if n := leaves(fromWeb, 1000); n != 619 {
		t.Errorf("%d packets left at once, want 619", n)
	}
	if n := leaves("client-a udp 10.10.0.12:1000 > 192.0.2.9:80", 10); n != 10 {
		t.Errorf("%d packets of a Pod without an Egress left, want 10", n)
	}
	if n := leaves("web-a udp 10.10.0.11:1000 > 10.10.0.12:80", 10); n != 10 {
		t.Errorf("%d packets to another Pod left, want 10", n)
	}
	if n := w.sw.Drops()[telemetry.DropMeter]; n != 381 {
		t.Errorf("%d packets dropped by the meter, want 381", n)
	}
	w.later(1) // 100,000 bits, and the 88 that were left, are 118 packets
	if n := leaves(fromWeb, 100) + w.egressFromTunnel("10.10.1.11:1000 > 192.0.2.9:80", 100); n != 118 {
		t.Errorf("%d packets left in a second, want 118", n)
	}
	if m := w.sw.Meters()[0]; m.ID != 1 || m.Packets != 1200 || m.Dropped[0] != 463 {
		t.Errorf("meter %d: %d packets, dropped %d; want meter 1, 1200 and 463", m.ID, m.Packets, m.Dropped)
	}
}

// egressFromTunnel injects packets that another Node sends to the Egress' address, and counts those that
// leave by the gateway.
func (w *wire) egressFromTunnel(text string, packets int) (left int) {
	w.t.Helper()
	for range packets {
		b := w.frame("tunnel", "udp "+text)
		f := packet.FrameOf(b)
		f.Tunnel = packet.Tunnel{Src: netip.MustParseAddr("192.168.1.2"), Dst: netip.MustParseAddr("192.168.1.100")}
		if w.ports["tunnel"].Inject(f) != 1 {
			w.t.Fatal("the tunnel accepts no frame")
		}
		w.sw.Poll()
		left += len(w.collect())
	}
	return left
}
