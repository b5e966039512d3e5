package agent

import (
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A Service without endpoints is refused, not ignored: its entry in table
// EndpointDNAT hands the packet to the agent, which answers in the Service's
// name: TCP with a reset, anything else with ICMP "port unreachable". The
// answer goes straight back to the port that the packet came from, with its
// addresses swapped, so nothing on the way has to know the connection.

const (
	// rejectRate and rejectBurst bound the answers: a client that ignores them
	// must not keep the agent busy.
	rejectRate  = 500 // a second
	rejectBurst = 200
	// quoted is how much of the packet an ICMP error carries: as much as fits
	// into the 576 bytes that RFC 1812, section 4.3.2.3, asks for.
	quoted = 576 - packet.IPv4Len - packet.ICMPLen

	icmpUnreachable     = 3 // RFC 792
	icmpPortUnreachable = 3
	replyTTL            = 64
)

// The packet-ins that are refused: userdata begins with this category, and the
// Service-without-endpoints mark is set in reg0 (bit 14).
const (
	categoryReject = 4
	noEndpointMark = 1 << 14
)

// rejecter is the subscriber of packet-ins. The switch calls it for one at a
// time.
type rejecter struct {
	sw     *dataplane.Switch
	bucket bucket
}

func (r *rejecter) packetIn(pi *dataplane.PacketIn) {
	if len(pi.UserData) == 0 || pi.UserData[0] != categoryReject || pi.Key.Reg(0)&noEndpointMark == 0 {
		return
	}
	if !r.bucket.take(time.Now()) {
		return
	}
	if b := rejection(pi.Frame); b != nil {
		r.sw.PacketOut(pi.InPort, []flow.Action{flow.OutputInPort{}}, b)
	}
}

// rejection is the answer to a frame that is refused; nil when it must not be
// answered: it is no IPv4, a later fragment, not sent to one host, a reset
// (RFC 9293, section 3.5.2), an ICMP error (RFC 1122, section 3.2.2), or not
// sound.
func rejection(frame []byte) []byte {
	l := packet.ParseLayers(frame)
	if l.EtherType != packet.EtherTypeIPv4 || l.TCI != 0 || l.End == 0 || l.Frag&packet.FragLater != 0 {
		return nil
	}
	ip := packet.IPv4(frame[l.L3:l.End])
	if !ip.Dst().IsGlobalUnicast() || !ip.Src().IsGlobalUnicast() {
		return nil
	}
	if l.Proto == packet.ProtoTCP {
		return reset(frame, &l)
	}
	if l.Proto == packet.ProtoICMP && (l.L4 == 0 || packet.ICMPError(packet.ICMP(frame[l.L4:l.End]).Type())) {
		return nil
	}
	return unreachable(frame, ip)
}

// reset answers a TCP segment (RFC 9293, section 3.5.2, group 1).
func reset(frame []byte, l *packet.Layers) []byte {
	if l.L4 == 0 {
		return nil
	}
	ip, in := packet.IPv4(frame[l.L3:l.End]), packet.TCP(frame[l.L4:l.End])
	if in.Flags()&packet.TCPRst != 0 {
		return nil
	}
	b := replyTo(frame, ip, packet.ProtoTCP, packet.TCPLen)
	out := packet.TCP(b[packet.EthernetLen+packet.IPv4Len:])
	out.SetSrcPort(in.DstPort())
	out.SetDstPort(in.SrcPort())
	out.SetHeaderLen(packet.TCPLen)
	if in.Flags()&packet.TCPAck != 0 {
		out.SetSeq(in.Ack())
		out.SetFlags(packet.TCPRst)
	} else {
		out.SetAck(in.Seq() + segmentLen(in))
		out.SetFlags(packet.TCPRst | packet.TCPAck)
	}
	sum := packet.IPv4(b[packet.EthernetLen:]).PseudoSum(packet.ProtoTCP, len(out))
	out.SetChecksum(packet.Checksum(out, sum))
	return b
}

// segmentLen is SEG.LEN: the payload's bytes, and one each for SYN and FIN.
func segmentLen(in packet.TCP) uint32 {
	n := uint32(len(in.Payload()))
	for _, flag := range []uint16{packet.TCPSyn, packet.TCPFin} {
		if in.Flags()&flag != 0 {
			n++
		}
	}
	return n
}

// unreachable answers with ICMP, quoting the packet.
func unreachable(frame []byte, ip packet.IPv4) []byte {
	quote := ip[:min(len(ip), quoted)]
	b := replyTo(frame, ip, packet.ProtoICMP, packet.ICMPLen+len(quote))
	out := packet.ICMP(b[packet.EthernetLen+packet.IPv4Len:])
	out.SetType(icmpUnreachable)
	out.SetCode(icmpPortUnreachable)
	copy(out[packet.ICMPLen:], quote)
	out.SetChecksum(packet.Checksum(out, 0))
	return b
}

// replyTo is a frame back to the sender of another, its IP payload of n bytes
// still zero.
func replyTo(frame []byte, ip packet.IPv4, proto uint8, n int) []byte {
	b := make([]byte, packet.EthernetLen+packet.IPv4Len+n)
	from, eth := packet.Ethernet(frame), packet.Ethernet(b)
	eth.SetDst(from.Src())
	eth.SetSrc(from.Dst())
	eth.SetType(packet.EtherTypeIPv4)
	out := packet.IPv4(b[packet.EthernetLen:])
	out.Init()
	out.SetTotalLen(uint16(len(out)))
	out.SetFlagsOffset(packet.IPv4DontFragment)
	out.SetTTL(replyTTL)
	out.SetProto(proto)
	out.SetSrc(ip.Dst())
	out.SetDst(ip.Src())
	out.UpdateChecksum()
	return b
}

// bucket is a token bucket. It is for one goroutine.
type bucket struct {
	rate, burst float64
	tokens      float64
	last        time.Time
}

// take says whether one more may pass now.
func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
