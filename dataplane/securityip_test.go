package dataplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// checkedFrame is a frame of the station 02:00:00:00:00:01, and what port security says
// of it.
type checkedFrame struct {
	name   string
	frame  []byte
	reason telemetry.DropReason // NotDropped for what passes
}

// Extension headers, as Extend6 wants them.
var (
	hopByHop    = []byte{packet.ProtoHopByHop, 0, 1, 4, 0, 0, 0, 0}
	routerAlert = []byte{packet.ProtoHopByHop, 0, 5, 2, 0, 0, 1, 0}
	destOptions = []byte{packet.ProtoDestOpts, 0, 1, 4, 0, 0, 0, 0}
	routing0    = []byte{packet.ProtoRouting, 0, 0, 1, 0, 0, 0, 0}
	routing4    = []byte{packet.ProtoRouting, 0, 4, 1, 0, 0, 0, 0}
	wholePiece  = []byte{packet.ProtoFragment, 0, 0, 0, 0, 0, 0, 9} // of a whole packet
	firstPiece  = []byte{packet.ProtoFragment, 0, 0, 1, 0, 0, 0, 9}
	laterPiece  = []byte{packet.ProtoFragment, 0, 0, 8, 0, 0, 0, 9}
)

// allNodes is what packets to ff02::1 have.
func allNodes(o pt.Options) pt.Options {
	o.EthDst, o.Dst = [6]byte{0x33, 0x33, 5: 1}, pt.Addr("ff02::1")
	return o
}

// nd is a message of neighbour discovery to all nodes.
func nd(typ uint8) []byte {
	return pt.ICMP6(allNodes(pt.Options{TTL: 255, Payload: make([]byte, 40)}), typ, 0, 0)
}

// withTags is a frame with VLAN tags, outermost first.
func withTags(frame []byte, tcis ...byte) []byte {
	for _, tci := range slices.Backward(tcis) {
		frame = slices.Concat(frame[:12], []byte{0x81, 0, 0, tci}, frame[12:])
	}
	return frame
}

// frames4 are frames with IPv4.
func frames4() []checkedFrame {
	options := func(b ...byte) []byte { return pt.UDP4(pt.Options{IPOptions: append(b, make([]byte, -len(b)&3)...)}) }
	multicast := pt.Options{Dst: pt.Addr("224.0.0.251")}
	group := multicast
	group.EthDst = [6]byte{1, 0, 0x5e, 0, 0, 0xfb}
	return []checkedFrame{
		{"UDP", pt.UDP4(pt.Options{}), telemetry.NotDropped},
		{"loose source route", options(131, 7, 4, 10, 0, 0, 9), telemetry.DropSourceRoute},
		{"strict source route", options(137, 7, 4, 10, 0, 0, 9), telemetry.DropSourceRoute},
		{"a source route behind other options", options(1, 1, 148, 4, 0, 0, 131, 7, 4, 10, 0, 0, 9), telemetry.DropSourceRoute},
		{"an option of length 0", options(148, 0, 131, 7), telemetry.DropSourceRoute},
		{"an option beyond the header", options(148, 9), telemetry.DropSourceRoute},
		{"router alert and record route", options(148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0), telemetry.NotDropped},
		{"a source route behind the end of options", options(0, 131, 7, 4, 10, 0, 0, 9), telemetry.NotDropped},
		{"multicast to a unicast MAC", pt.UDP4(multicast), telemetry.DropMulticastMAC},
		{"multicast", pt.UDP4(group), telemetry.NotDropped},
		{"a VLAN tag", withTags(pt.UDP4(pt.Options{}), 7), telemetry.DropVLANTag},
		{"a priority tag", withTags(pt.UDP4(pt.Options{}), 0), telemetry.DropVLANTag},
		{"a tag cut short", withTags(pt.UDP4(pt.Options{}), 7)[:17], telemetry.DropVLANTag},
		{"two VLAN tags", withTags(pt.UDP4(pt.Options{}), 7, 8), telemetry.DropVLANTag},
		{"another MAC", pt.UDP4(pt.Options{EthSrc: station(9)}), telemetry.DropForeignMAC},
		{"a multicast MAC as source", pt.UDP4(pt.Options{EthSrc: [6]byte{3, 5: 1}}), telemetry.DropForeignMAC},
		{"ARP", pt.ARPRequest(pt.Options{}), telemetry.NotDropped},
	}
}

// frames6 are frames with IPv6.
func frames6() []checkedFrame {
	udp, group := pt.UDP6(pt.Options{}), pt.UDP6(allNodes(pt.Options{}))
	toOne := allNodes(pt.Options{})
	toOne.EthDst = station(2)
	far := nd(packet.ICMPv6NeighborSolicit)
	packet.IPv6(far[packet.EthernetLen:]).SetHopLimit(254)
	report := pt.ICMP6(allNodes(pt.Options{TTL: 1}), packet.ICMPv6MLDv2Report, 0, 0)
	nine := slices.Repeat([][]byte{destOptions}, 9)
	return []checkedFrame{
		{"UDP6", udp, telemetry.NotDropped},
		{"UDP to ff02::1", group, telemetry.DropIPv6Multicast},
		{"TCP to ff02::1", pt.TCP6(allNodes(pt.Options{})), telemetry.DropIPv6Multicast},
		{"an echo to ff02::1", pt.ICMPEcho6(allNodes(pt.Options{})), telemetry.DropIPv6Multicast},
		{"UDP behind options to ff02::1", pt.Extend6(group, hopByHop, destOptions), telemetry.DropIPv6Multicast},
		{"a later fragment to ff02::1", pt.Extend6(group, laterPiece), telemetry.DropIPv6Multicast},
		{"UDP to ff02::1 and a unicast MAC", pt.UDP6(toOne), telemetry.DropMulticastMAC},
		{"neighbour discovery to ff02::1 and a unicast MAC", pt.NeighborSolicit6(toOne), telemetry.DropMulticastMAC},
		{"MLD", pt.Extend6(report, routerAlert), telemetry.NotDropped},
		{"MLD in a fragment", pt.Extend6(report, routerAlert, wholePiece), telemetry.DropIPv6Multicast},
		{"router solicitation", nd(packet.ICMPv6RouterSolicit), telemetry.NotDropped},
		{"neighbour solicitation", nd(packet.ICMPv6NeighborSolicit), telemetry.NotDropped},
		{"neighbour advertisement", nd(packet.ICMPv6NeighborAdvert), telemetry.NotDropped},
		{"router advertisement", nd(packet.ICMPv6RouterAdvert), telemetry.DropNDForbidden},
		{"redirect", nd(packet.ICMPv6Redirect), telemetry.DropNDForbidden},
		{"redirect behind options", pt.Extend6(nd(packet.ICMPv6Redirect), hopByHop, destOptions), telemetry.DropNDForbidden},
		{"neighbour discovery from afar", far, telemetry.DropNDForbidden},
		{"neighbour discovery with a fragment header", pt.Extend6(nd(packet.ICMPv6NeighborSolicit), wholePiece), telemetry.DropNDForbidden},
		{"neighbour discovery in a first fragment", pt.Extend6(nd(packet.ICMPv6NeighborAdvert), firstPiece), telemetry.DropNDForbidden},
		{"the same behind options", pt.Extend6(nd(packet.ICMPv6NeighborAdvert), firstPiece, destOptions), telemetry.DropNDForbidden},
		{"a first fragment without a transport header", pt.Split(pt.Extend6(nd(packet.ICMPv6RouterAdvert), destOptions), 1, 8)[0], telemetry.DropExtHeaders},
		{"a first fragment with one", pt.Split(pt.UDP6(pt.Options{Payload: make([]byte, 600)}), 1, 304)[0], telemetry.NotDropped},
		{"routing header of type 0", pt.Extend6(udp, routing0), telemetry.DropSourceRoute},
		{"routing header of type 0 behind others", pt.Extend6(udp, hopByHop, routing4, routing0), telemetry.DropSourceRoute},
		{"routing header of type 4", pt.Extend6(udp, routing4), telemetry.NotDropped},
		{"eight extension headers", pt.Extend6(udp, nine[:8]...), telemetry.NotDropped},
		{"nine extension headers", pt.Extend6(udp, nine...), telemetry.DropExtHeaders},
		{"another MAC, IPv6", pt.UDP6(pt.Options{EthSrc: station(9)}), telemetry.DropForeignMAC},
	}
}

// expiredFrames have no life left.
func expiredFrames() []checkedFrame {
	ip4, ip6 := pt.UDP4(pt.Options{}), pt.UDP6(pt.Options{})
	packet.IPv4(ip4[packet.EthernetLen:]).SetTTL(0)
	packet.IPv4(ip4[packet.EthernetLen:]).UpdateChecksum()
	packet.IPv6(ip6[packet.EthernetLen:]).SetHopLimit(0)
	return []checkedFrame{
		{"TTL 0", ip4, telemetry.DropTTLZero},
		{"hop limit 0", ip6, telemetry.DropTTLZero},
		{"hop limit 0 and extension headers that do not fit", pt.Extend6(ip6, []byte{packet.ProtoHopByHop, 9, 1, 4, 0, 0, 0, 0}), telemetry.DropTTLZero},
	}
}

// securityCases are packets that port security drops, one for each reason.
func securityCases() (all []dropCase) {
	seen := map[telemetry.DropReason]bool{telemetry.NotDropped: true}
	for _, f := range slices.Concat(frames4(), frames6(), expiredFrames()) {
		if !seen[f.reason] {
			all = append(all, dropCase{reason: f.reason, flows: "table=1 actions=output:2", want: "in 1", frame: f.frame,
				setup: func(r *rig) { r.secure(1, guarded(1)) }})
		}
		seen[f.reason] = true
	}
	return all
}

// TestPortSecurity sends each frame three times from a port with security and from one
// without, by a walk and by what is remembered of it, and has it traced.
func TestPortSecurity(t *testing.T) {
	r := newRemembering(t, "table=0 actions=output:2", conntrack.Config{}, dataplane.Config{Cache: walktest.Cache()})
	for _, secured := range []bool{true, false} {
		r.secure(1, l2.PortSecurity{})
		if secured {
			r.secure(1, guarded(1))
		}
		for _, f := range slices.Concat(frames4(), frames6(), expiredFrames()) {
			want := "2"
			if f.reason == telemetry.DropTTLZero || secured && f.reason != telemetry.NotDropped {
				want = fmt.Sprintf("drop %s in 0", f.reason)
			}
			for i := range 3 {
				if got := r.outcomeOf(1, f.frame); got != want {
					t.Errorf("%s, secured %v, packet %d: %q, want %q", f.name, secured, i, got, want)
				}
			}
			traced := "2"
			if v := r.trace(1, f.frame).Verdict; v.Reason != telemetry.NotDropped {
				traced = fmt.Sprintf("drop %s in 0", v.Reason)
			}
			if traced != want {
				t.Errorf("%s, secured %v: a trace says %q, want %q", f.name, secured, traced, want)
			}
		}
	}
}

// TestTagsAllowed: with one tag the rest of port security holds behind it. Two are
// never allowed.
func TestTagsAllowed(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	allowed := guarded(1)
	allowed.Tags = true
	r.secure(1, allowed)
	for _, f := range slices.Concat(frames4(), frames6(), expiredFrames()) {
		reason := f.reason
		if packet.IsVLAN(packet.Ethernet(f.frame).Type()) {
			continue
		}
		want := "2"
		if reason != telemetry.NotDropped {
			want = fmt.Sprintf("drop %s in 0", reason)
		}
		if got := r.outcomeOf(1, withTags(f.frame, 7)); got != want {
			t.Errorf("%s: %q, want %q", f.name, got, want)
		}
		if got := r.outcomeOf(1, withTags(f.frame, 7, 8)); reason != telemetry.DropForeignMAC && got != "drop vlan_tag in 0" {
			t.Errorf("%s with two tags: %q", f.name, got)
		}
	}
}

// TestTagsAsOpenVSwitch: of a frame with two tags, the second is its dl_type, and nothing
// is read behind it. NORMAL sends no tag of VLAN and priority 0, and the actions behind
// it do.
func TestTagsAsOpenVSwitch(t *testing.T) {
	const flows = "table=0,priority=2,dl_type=0x8100 actions=output:3\ntable=0,priority=1,udp actions=output:2\ntable=0,priority=0 actions=NORMAL,output:3"
	ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2}, ovstest.Port{Name: "p3", Number: 3})
	must(t)(ovs.Ofctl("add-flows", write(t, flows)))
	r := newRig(t, flows)
	r.check(r.sw.RemovePort(4))
	arp, priority := pt.ARPRequest(pt.Options{}), withTags(pt.ARPRequest(pt.Options{}), 0)
	priority[14] = 0xa0
	for name, frame := range map[string][]byte{
		"no tag": arp, "VLAN 0, priority 0": withTags(arp, 0), "VLAN 0, priority 5": priority, "VLAN 7": withTags(arp, 7),
		"two tags over ARP": withTags(arp, 7, 8), "two tags over UDP": withTags(pt.UDP4(pt.Options{}), 7, 8),
		"three tags": withTags(arp, 7, 8, 9), "a tag over UDP": withTags(pt.UDP4(pt.Options{}), 7),
	} {
		text := must(t)(ovs.Appctl("ofproto/trace", ovstest.Bridge, "in_port=p1", fmt.Sprintf("%x", frame), "--names"))
		want := taggedOutputs(t, tagOf(frame), text)
		var got []string
		for _, s := range r.sendFrame(1, frame) {
			got = append(got, fmt.Sprintf("p%d %s", s.port, tagOf(s.frame)))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: left as %q, from Open vSwitch as %q", name, got, want)
		}
	}
}

// tagOf is a frame's outermost tag.
func tagOf(frame []byte) string {
	if !packet.IsVLAN(packet.Ethernet(frame).Type()) {
		return "untagged"
	}
	tci := packet.VLAN(frame[12:]).TCI()
	return fmt.Sprintf("vid=%d,pcp=%d", tci&0xfff, tci>>13)
}

// taggedOutputs are the outputs of an ofproto/trace, each with the outermost tag that its
// frame has: at first tag.
func taggedOutputs(t *testing.T, tag, text string) (all []string) {
	t.Helper()
	_, actions, found := strings.Cut(text, "Datapath actions: ")
	if !found {
		t.Fatalf("no datapath actions: %s", text)
	}
	actions, _, _ = strings.Cut(actions, "\n")
	for _, a := range splitTop(actions) {
		pushed, push := strings.CutPrefix(a, "push_vlan(")
		switch {
		case a == "pop_vlan":
			tag = "untagged"
		case push:
			tag = strings.TrimSuffix(pushed, ")")
		case a != ovstest.Bridge:
			all = append(all, a+" "+tag)
		}
	}
	slices.Sort(all)
	return all
}
