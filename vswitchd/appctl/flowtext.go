package appctl

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// The text of a flow as ofproto/trace prints it: each field of the packet, and each nonzero
// metadata field.

// alwaysShown are the fields that every packet has.
var alwaysShown = []flow.FieldID{flow.InPort, flow.EthSrc, flow.EthDst, flow.EthType, flow.VlanTCI}

// shownIfSet are the metadata fields that are shown if they are not zero. tunnelText shows those of
// a tunnel.
var shownIfSet = append(registers(), flow.PktMark, flow.Metadata, flow.CTState, flow.CTZone, flow.CTMark, flow.CTLabel)

func registers() (all []flow.FieldID) {
	for id := flow.Reg0; id < flow.XReg0; id++ {
		all = append(all, id)
	}
	return all
}

// headerFields are the fields of a packet's protocols.
func headerFields(k *flow.Key) []flow.FieldID {
	ip := []flow.FieldID{flow.IPProto, flow.IPDSCP, flow.IPECN, flow.IPTTL, flow.IPFrag}
	switch uint16(get(k, flow.EthType)) {
	case packet.EtherTypeARP, packet.EtherTypeRARP:
		return []flow.FieldID{flow.ArpSPA, flow.ArpTPA, flow.ArpOp, flow.ArpSHA, flow.ArpTHA}
	case packet.EtherTypeIPv4:
		return append(append(ip, flow.IPSrc, flow.IPDst), transportFields(k, packet.ProtoICMP)...)
	case packet.EtherTypeIPv6:
		return append(append(ip, flow.IPv6Src, flow.IPv6Dst, flow.IPv6Label), transportFields(k, packet.ProtoICMPv6)...)
	}
	return nil
}

// transportFields are the fields of layer 4. They are zeros in a later fragment.
func transportFields(k *flow.Key, icmp uint8) []flow.FieldID {
	switch proto := uint8(get(k, flow.IPProto)); proto {
	case packet.ProtoTCP:
		return []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.TCPFlags}
	case packet.ProtoUDP, packet.ProtoSCTP:
		return []flow.FieldID{flow.TCPSrc, flow.TCPDst}
	case icmp:
		if proto == packet.ProtoICMP {
			return []flow.FieldID{flow.ICMPType, flow.ICMPCode}
		}
		return append([]flow.FieldID{flow.ICMPv6Type, flow.ICMPv6Code}, neighbourFields(k)...)
	}
	return nil
}

// neighbourFields are those of neighbour discovery.
func neighbourFields(k *flow.Key) []flow.FieldID {
	const solicitation, advertisement = 135, 136
	if t := get(k, flow.ICMPv6Type); t == solicitation || t == advertisement {
		return []flow.FieldID{flow.NDTarget, flow.NDSLL, flow.NDTLL}
	}
	return nil
}

// get is a field's lower 64 bits.
func get(k *flow.Key, id flow.FieldID) uint64 { return flow.FieldByID(id).Get(k).Lo }

// flowText is the text of a packet's flow. recirc is the number of its pass; 0 for the first.
func flowText(k *flow.Key, recirc int, n *flow.Names) string {
	var m flow.Match
	for _, id := range append(alwaysShown, headerFields(k)...) {
		m.AddExact(id, flow.FieldByID(id).Get(k))
	}
	for _, id := range shownIfSet {
		if v := flow.FieldByID(id).Get(k); !v.IsZero() {
			m.AddExact(id, v)
		}
	}
	text := m.Text(n)
	if get(k, flow.VlanTCI)&packet.VLANPresent != 0 {
		text = strings.Replace(text, ",dl_src=", ",vlan_tci1=0x0000,dl_src=", 1)
	}
	if !flow.FieldByID(flow.TunDst).Get(k).IsZero() || !flow.FieldByID(flow.TunIPv6Dst).Get(k).IsZero() {
		at := strings.Index(text, "in_port=")
		if metadata := strings.Index(text, "metadata="); metadata >= 0 {
			at = metadata
		}
		text = text[:at] + tunnelText(k) + text[at:]
	}
	if recirc != 0 {
		text = withPass(text, recirc)
	}
	return text
}

// tunnelText is the text of a tunnel's fields.
func tunnelText(k *flow.Key) string {
	words := func(id flow.FieldID) string { return flow.FieldText(id, k, nil) }
	text := fmt.Sprintf("%s,%s,%s,%s,tun_gbp_id=0,tun_gbp_flags=0,%s,%s,tun_erspan_ver=0,gtpu_flags=0,gtpu_msgtype=0,%s,",
		words(flow.TunSrc), words(flow.TunDst), words(flow.TunIPv6Src), words(flow.TunIPv6Dst), words(flow.TunTOS), words(flow.TunTTL), words(flow.TunFlags))
	for i := range flow.FieldID(flow.TunMetadataFields) {
		if get(k, flow.TunPresent)>>i&1 != 0 {
			text += words(flow.TunMetadata0+i) + ","
		}
	}
	return text
}

// withPass adds the number of a later pass and "eth" to a flow.
func withPass(text string, recirc int) string {
	mark, rest := "", text
	if strings.HasPrefix(text, "pkt_mark=") {
		i := strings.Index(text, ",") + 1
		mark, rest = text[:i], text[i:]
	}
	at := 0
	for strings.HasPrefix(rest[at:], "ct_") {
		at += strings.Index(rest[at:], ",") + 1
	}
	return fmt.Sprintf("%srecirc_id=%#x,%seth,%s", mark, recirc, rest[:at], rest[at:])
}
