package l2

import (
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Port security forbids the following in IP packets. End systems send none of it, and each helps
// an attack that flow entries cannot see:
//
//	source routes       bypass an entry that examines the destination (RFC 7126,
//	                    RFC 5095)
//	long chains of      cost processing time, and hide the transport header
//	extension headers   (RFC 7045); so does a first fragment without it (RFC 7112)
//	neighbour discovery from a router, in fragments or from afar redirects a
//	                    neighbour's traffic (RFC 6105, RFC 6980, RFC 7113, RFC 4861)
//	group addresses     leave by NORMAL in Antrea's table IPv6, past conntrack and
//	                    every policy; only neighbour discovery and MLD need that
//	a group address     behind a unicast MAC: only the pod of that MAC gets it
//
// IPv4 packets to group addresses are tracked, and policies see them, like any packet that leaves
// the cluster.

// maxExtensions is how many extension headers a packet may have.
const maxExtensions = 8

// groupMAC says whether a frame is for a group of stations.
func groupMAC(b []byte) bool { return b[0]&1 != 0 }

// checkIPv4 is the reason to drop a frame with an IPv4 packet; NotDropped for none.
func checkIPv4(b []byte, h packet.IPv4) telemetry.DropReason {
	switch {
	case h.HeaderLen() > packet.IPv4Len && sourceRoute(h[packet.IPv4Len:h.HeaderLen()]):
		return telemetry.DropSourceRoute
	case h.DstBytes()[0]>>4 == 0xe && !groupMAC(b):
		return telemetry.DropMulticastMAC
	}
	return telemetry.NotDropped
}

// Options of IPv4 (RFC 791, section 3.1).
const (
	optionEnd    = 0
	optionNoop   = 1
	optionLSRR   = 131
	optionSSRR   = 137
	optionHeader = 2 // type and length
)

// sourceRoute says whether IPv4 options have a loose or strict source route, or are malformed.
func sourceRoute(options []byte) bool {
	for len(options) > 0 && options[0] != optionEnd {
		n := 1
		switch typ := options[0]; {
		case typ == optionLSRR || typ == optionSSRR:
			return true
		case typ != optionNoop:
			if len(options) < optionHeader {
				return true
			}
			if n = int(options[1]); n < optionHeader || n > len(options) {
				return true
			}
		}
		options = options[n:]
	}
	return false
}

// checkIPv6 is the reason to drop a frame with an IPv6 packet; NotDropped for none.
func checkIPv6(b []byte, l *packet.Layers) telemetry.DropReason {
	h := packet.IPv6(b[l.L3:l.End])
	x := packet.ReadExtensions(h)
	switch {
	case x.SourceRoute:
		return telemetry.DropSourceRoute
	case x.Count > maxExtensions, l.Frag == packet.FragAny && l.L4 == 0:
		return telemetry.DropExtHeaders
	}
	message := noMessage
	if l.Proto == packet.ProtoICMPv6 && l.L4 != 0 {
		message = int(b[l.L4])
	}
	nd := message >= packet.ICMPv6RouterSolicit && message <= packet.ICMPv6Redirect
	router := message == packet.ICMPv6RouterAdvert || message == packet.ICMPv6Redirect
	group := h.DstBytes()[0] == 0xff
	switch {
	case nd && (router || x.Fragment || h.HopLimit() != 255):
		return telemetry.DropNDForbidden
	case group && !groupMAC(b):
		return telemetry.DropMulticastMAC
	case group && !nd && (!isMLD(message) || x.Fragment):
		return telemetry.DropIPv6Multicast
	}
	return telemetry.NotDropped
}

// noMessage stands for a packet without an ICMPv6 message.
const noMessage = -1

// isMLD says whether an ICMPv6 message belongs to multicast listener discovery (RFC 2710, RFC
// 3810).
func isMLD(message int) bool {
	switch message {
	case packet.ICMPv6MLDQuery, packet.ICMPv6MLDReport, packet.ICMPv6MLDDone, packet.ICMPv6MLDv2Report:
		return true
	}
	return false
}
