package testbed

import (
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
)

// Sender is the pod that sends frames: db-a of examples/two-nodes. Its frames to Receiver pass all
// tables of policies, and no policy denies them.
func Sender() lab.Pod { return lab.TwoNodes().Nodes[0].Pods[2] }

// Receiver is the pod that receives frames: client-a of examples/two-nodes.
func Receiver() lab.Pod { return lab.TwoNodes().Nodes[0].Pods[0] }

const (
	// KnownSrc and knownDst are the UDP ports of the known connection.
	KnownSrc, knownDst = 1000, 2000
	// udpAt is where a frame has its UDP header.
	udpAt = packet.EthernetLen + packet.IPv4Len
)

// UDPFrame is a UDP frame of size bytes from one pod to another. It has no UDP checksum, which IPv4
// allows, so that its ports can be changed in place.
func UDPFrame(from, to lab.Pod, src, dst uint16, size int) []byte {
	b := make([]byte, size)
	e := packet.Ethernet(b)
	copy(b[:6], to.MAC[:])
	copy(b[6:12], from.MAC[:])
	e.SetType(packet.EtherTypeIPv4)
	ip := packet.IPv4(b[packet.EthernetLen:])
	ip.Init()
	ip.SetTotalLen(uint16(len(ip)))
	ip.SetTTL(64)
	ip.SetProto(packet.ProtoUDP)
	copy(ip.SrcBytes(), from.Address.V4.AsSlice())
	copy(ip.DstBytes(), to.Address.V4.AsSlice())
	ip.UpdateChecksum()
	u := packet.UDP(b[udpAt:])
	u.SetSrcPort(src)
	u.SetDstPort(dst)
	u.SetLength(uint16(len(u)))
	return b
}

// KnownFrame is a frame of the known connection, from Sender to Receiver, with size bytes.
func KnownFrame(size int) []byte { return UDPFrame(Sender(), Receiver(), KnownSrc, knownDst, size) }

// AnswerFrame is a frame that answers on the known connection, with size bytes.
func AnswerFrame(size int) []byte { return UDPFrame(Receiver(), Sender(), knownDst, KnownSrc, size) }
