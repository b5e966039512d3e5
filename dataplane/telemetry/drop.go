package telemetry

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
)

// DropReason is why a packet was dropped. The list is closed: counters, traces, metrics and
// documentation come from it. The numbers are part of the interface and are never reused.
type DropReason uint8

// The reasons.
const (
	NotDropped DropReason = iota
	DropByEntry
	DropTableMiss
	DropNoOutput
	DropToInPort
	DropNoSuchPort
	DropNoTunnelDst
	DropTTL
	DropMeter
	DropTooDeep
	DropNoBucket
	DropRuntFrame
	DropNoFrame
	DropPacketInFull
	DropNoPipeline
	DropReservedMAC
	DropNATExhausted
	DropConntrackFull
	DropZoneFull
	DropBadOffload
	DropServerFirst
	DropFragShape
	DropFragTooLong
	DropFragTooMany
	DropFragOverlap
	DropFragDuplicate
	DropFragFull
	DropFragExpired
	DropNewRate
	DropForeignMAC
	DropVLANTag
	DropSegments
	DropPortShare
	DropTTLZero
	DropSourceRoute
	DropExtHeaders
	DropNDForbidden
	DropMulticastMAC
	DropIPv6Multicast
	DropControllerAway
	DropNoReceive
	DropNoForward
	DropTunnelOption
	NumDropReasons
)

var dropTexts = [NumDropReasons]struct{ name, sentence string }{
	NotDropped:         {"none", "The packet was not dropped."},
	DropByEntry:        {"entry", "A flow entry without an output says drop."},
	DropTableMiss:      {"table_miss", "No flow entry of the table matches, and the table has no table-miss entry."},
	DropNoOutput:       {"no_output", "The walk came to its end and no action had sent the packet anywhere."},
	DropToInPort:       {"to_in_port", "The only output was the port of entry; only IN_PORT sends a packet back."},
	DropNoSuchPort:     {"no_such_port", "The output port does not exist on this Node."},
	DropNoTunnelDst:    {"no_tunnel_dst", "The packet reached a tunnel port, and no flow entry had set tun_dst."},
	DropTTL:            {"ttl", "The TTL ran out at dec_ttl."},
	DropMeter:          {"meter", "A meter's rate was exceeded."},
	DropTooDeep:        {"too_deep", "The walk passed the limit of nested or repeated tables; the entries form a loop."},
	DropNoBucket:       {"no_bucket", "The group has no bucket to choose."},
	DropRuntFrame:      {"runt", "The frame is shorter than an Ethernet header."},
	DropNoFrame:        {"no_frame", "No free frame was left to make a copy."},
	DropPacketInFull:   {"packet_in_full", "The packet-in queue was full."},
	DropNoPipeline:     {"no_pipeline", "No pipeline is loaded yet."},
	DropReservedMAC:    {"reserved_mac", "NORMAL does not forward to 01:80:c2:00:00:0x (IEEE 802.1D, link-local)."},
	DropNATExhausted:   {"ct_nat_exhausted", "No free address and port was left for the NAT of a new connection."},
	DropConntrackFull:  {"ct_full", "The connection table is full (conntrack.max)."},
	DropZoneFull:       {"ct_zone_full", "The conntrack zone is at its limit (conntrack.zones, conntrack.zoneMax)."},
	DropBadOffload:     {"bad_offload", "The checksum or segmentation that the sender left undone does not fit the packet."},
	DropServerFirst:    {"ct_server_first", "The agent has lost its connections, and a Service's endpoint sent before its client did."},
	DropFragShape:      {"frag_shape", "The fragment is empty, or is not its datagram's last and shorter than 256 bytes or not a multiple of 8."},
	DropFragTooLong:    {"frag_too_long", "The fragment's datagram would be longer than 65535 bytes."},
	DropFragTooMany:    {"frag_too_many", "The fragment's datagram has more than 64 fragments."},
	DropFragOverlap:    {"frag_overlap", "Two fragments of the datagram overlap or contradict each other."},
	DropFragDuplicate:  {"frag_duplicate", "The same fragment is waiting for the rest of its datagram already."},
	DropFragFull:       {"frag_full", "No room was left for waiting fragments, or none for those from this port."},
	DropFragExpired:    {"frag_expired", "The rest of the fragment's datagram did not come within 15 seconds."},
	DropNewRate:        {"ct_new_rate", "The port begins connections faster than its rate allows (conntrack.newRate)."},
	DropForeignMAC:     {"foreign_mac", "Port security: the frame's source MAC address is not one of the port's own."},
	DropVLANTag:        {"vlan_tag", "The frame has a VLAN tag, and the port may send none (podVLANTags); or two tags; or a VLAN without the port."},
	DropSegments:       {"segments", "The frame is to be cut into more segments than an honest sender leaves undone."},
	DropPortShare:      {"ct_port_share", "The connection table is over 95 % full, and the port holds more than its fair share of it (conntrack.max)."},
	DropTTLZero:        {"ttl_zero", "The packet came with TTL or hop limit 0."},
	DropSourceRoute:    {"source_route", "Port security: a loose or strict source route, IPv4 options that cannot be read, or an IPv6 routing header of type 0."},
	DropExtHeaders:     {"ext_headers", "Port security: more than 8 IPv6 extension headers, or a first fragment without its transport header."},
	DropNDForbidden:    {"nd_forbidden", "Port security: a router advertisement or redirect, or neighbour discovery in a fragment or with a hop limit other than 255."},
	DropMulticastMAC:   {"multicast_mac", "Port security: a multicast IP address in a frame for a unicast MAC address."},
	DropIPv6Multicast:  {"ipv6_multicast", "Port security: an IPv6 packet to a multicast address that is neither neighbour discovery nor MLD."},
	DropControllerAway: {"controller_away", "An entry sends the packet to the controller, and no controller is connected to the switch."},
	DropNoReceive:      {"no_receive", "Its port is down or no-receive (mod-port)."},
	DropNoForward:      {"no_forward", "The output port is down or no-forward (mod-port)."},
	DropTunnelOption:   {"tunnel_option", "A Geneve option is critical and no tun_metadata field stands for it, or it has another length than its field."},
}

// String is the reason's name, as counters and metrics show it.
func (r DropReason) String() string { return dropTexts[r].name }

// Sentence tells an operator what the reason means.
func (r DropReason) Sentence() string { return dropTexts[r].sentence }

// InTable says whether a packet dropped for this reason is dropped in a table. Port security
// drops packets before the first table, and counters show them under that table.
func (r DropReason) InTable() bool {
	switch r {
	case NotDropped, DropRuntFrame, DropNoPipeline,
		DropForeignMAC, DropVLANTag, DropTTLZero, DropSourceRoute, DropExtHeaders, DropNDForbidden, DropMulticastMAC, DropIPv6Multicast, DropNoReceive, DropTunnelOption:
		return false
	}
	return true
}

// DropReasons lists all reasons in order, without NotDropped.
func DropReasons() []DropReason {
	var all []DropReason
	for r := NotDropped + 1; r < NumDropReasons; r++ {
		all = append(all, r)
	}
	return all
}

// ConntrackDrops maps conntrack's drop reasons.
var ConntrackDrops = map[conntrack.DropReason]DropReason{
	conntrack.DropNATExhausted: DropNATExhausted,
	conntrack.DropTableFull:    DropConntrackFull,
	conntrack.DropZoneFull:     DropZoneFull,
	conntrack.DropServerFirst:  DropServerFirst,
	conntrack.DropNewRate:      DropNewRate,
	conntrack.DropChainFull:    DropConntrackFull,
	conntrack.DropPortShare:    DropPortShare,
}

// FragmentDrops maps the drop reasons of fragments.
var FragmentDrops = [...]DropReason{
	reassembly.DropShape:     DropFragShape,
	reassembly.DropTooLong:   DropFragTooLong,
	reassembly.DropTooMany:   DropFragTooMany,
	reassembly.DropOverlap:   DropFragOverlap,
	reassembly.DropDuplicate: DropFragDuplicate,
	reassembly.DropFull:      DropFragFull,
	reassembly.DropExpired:   DropFragExpired,
}
