package demo

import (
	"bytes"
	"net"
	"slices"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// A hostile pod: what client-a, with raw sockets, may not do to the pods of its Node
// and to the switch.

// hostile is a frame that client-a sends, and the reason it is dropped for.
type hostile struct {
	name   string
	frame  []byte
	reason telemetry.DropReason
}

// TestHostilePod sends each frame from client-a. None arrives at web-a, and the agent
// names each with its Pod and its reason.
func TestHostilePod(t *testing.T) {
	w := plainLab(t).world(t)
	genuine := arpFrame(w.wire().client, w.wire().web.ip)
	for _, h := range (frames{w}).hostile(t) {
		t.Run(h.name, func(t *testing.T) {
			if err := w.sendSpoof(&spoof{forged: h.frame, genuine: genuine}); err != nil {
				t.Fatal(err)
			}
			w.wantHostile(t, h.reason)
		})
	}
	w.wantStations(t)
}

// hostile are the frames.
func (f frames) hostile(t *testing.T) []hostile {
	t.Helper()
	client, gateway := f.pod("client-a")
	web, _ := f.pod("web-a")
	claims := func(mac [6]byte) []byte {
		b := packettest.ARPRequest(packettest.Options{
			EthSrc: client.MAC, EthDst: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, Src: client.Address.V4, Dst: web.Address.V4,
		})
		copy(b[6:], mac[:])
		return b
	}
	group := packettest.Options{EthSrc: client.MAC, EthDst: [6]byte{0x33, 0x33, 5: 1}, Src: client.Address.V6, Dst: packettest.Addr("ff02::1")}
	toWeb, message := group, group
	toWeb.EthDst, message.TTL, message.Payload = web.MAC, 255, make([]byte, 40)
	wholePiece := []byte{packet.ProtoFragment, 0, 0, 0, 0, 0, 0, 9}
	expired := f.tcp("client-a", "web-a", 80)
	packet.IPv4(expired[packet.EthernetLen:]).SetTTL(0)
	packet.IPv4(expired[packet.EthernetLen:]).UpdateChecksum()
	return []hostile{
		{"ARP with the gateway's MAC", claims(gateway), telemetry.DropForeignMAC},
		{"ARP with another pod's MAC", claims(web.MAC), telemetry.DropForeignMAC},
		{"a VLAN tag", f.tcp("client-a", "web-a", 80, func(o *packettest.Options) { o.VLAN = 5 }), telemetry.DropVLANTag},
		{"UDP to ff02::1", packettest.UDP6(group), telemetry.DropIPv6Multicast},
		{"UDP to ff02::1 and web-a's MAC", packettest.UDP6(toWeb), telemetry.DropMulticastMAC},
		{"an ND redirect", packettest.ICMP6(message, packet.ICMPv6Redirect, 0, 0), telemetry.DropNDForbidden},
		{"neighbour discovery in a fragment", packettest.Extend6(packettest.ICMP6(message, packet.ICMPv6NeighborAdvert, 0, 0), wholePiece), telemetry.DropNDForbidden},
		{"a loose source route", f.tcp("client-a", "web-a", 80, func(o *packettest.Options) { o.IPOptions = []byte{131, 7, 4, 10, 10, 0, 1, 0} }), telemetry.DropSourceRoute},
		{"a routing header of type 0", packettest.Extend6(f.tcp6("client-a", "web-a", 80), []byte{packet.ProtoRouting, 0, 0, 1, 0, 0, 0, 0}), telemetry.DropSourceRoute},
		{"nine extension headers", packettest.Extend6(f.tcp6("client-a", "web-a", 80), slices.Repeat([][]byte{{packet.ProtoDestOpts, 0, 1, 4, 0, 0, 0, 0}}, 9)...), telemetry.DropExtHeaders},
		{"TTL 0", expired, telemetry.DropTTLZero},
	}
}

// wantHostile wants the last packet that node-a lost to be one of client-a's, for a
// reason.
func (w *world) wantHostile(t *testing.T, reason telemetry.DropReason) {
	t.Helper()
	lost, err := w.agent("node-a").DroppedPackets(t.Context(), &api.DropQuery{Pod: "default/client-a", Reason: reason.String()})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(lost.Packets, func(p api.DroppedPacket) bool { return p.Port.Pod == "default/client-a" && p.Table == "" })
	if at < 0 {
		t.Errorf("no packet of client-a is named for %s: %+v", reason, lost.Packets)
	}
}

// wantStations wants no MAC but client-a's to be learned at its port.
func (w *world) wantStations(t *testing.T) {
	t.Helper()
	client, _ := (frames{w}).pod("client-a")
	var all []api.LearnedMAC
	if err := w.agent("node-a").JSON(t.Context(), "/fdb", nil, &all); err != nil {
		t.Fatal(err)
	}
	own := false
	for _, s := range all {
		mac, err := net.ParseMAC(s.MAC)
		if err != nil {
			t.Fatal(err)
		}
		mine := bytes.Equal(mac, client.MAC[:])
		own = own || mine
		if (s.Port == client.OFPort) != mine {
			t.Errorf("%s is learned at port %d", s.MAC, s.Port)
		}
	}
	if !own {
		t.Errorf("client-a's own MAC is not learned: %+v", all)
	}
}
