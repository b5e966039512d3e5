// Package ports is where frames enter and leave the switch. A Port moves batches of
// frames. The packages below this one are its kinds: memory (tests, replays), afxdp (a
// network card), afpacket (a pod's veth) and tap (the gateway). The tunnels to other
// Nodes are underlay and, by AF_XDP on the card, uplink. The suite in porttest says what
// they share; pcap reads and writes captures.
//
//	port.go, largepool.go     the interface; frames to receive into
//	portcounters.go           what a port counts
//	reason.go, tunnelreason.go  why it loses a frame
//	poll.go, pollother.go     a worker that sleeps until a port has frames, on Linux and elsewhere
//	awake.go, awakeother.go   processors that do not fall asleep, on Linux and elsewhere
//	carries.go, virtio.go     work left undone with a frame: who passes it on, and in which words
//	offload.go              connections that the kernel forwards
//	link.go, ethtool.go       whether a link is there and up; its offloads and queues
//	dropsample.go               the last packet that was dropped, by reason
//	release.go                what this kernel can do
package ports

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// Port is one way in and out. One worker calls Receive; any worker may call
// Transmit and Flush (a driver that needs a lock takes it once per batch).
// None of the calls blocks.
type Port interface {
	// Name is the interface name shown to people.
	Name() string
	// Receive puts up to len(batch) frames into batch and returns how many.
	// The frames belong to the caller from then on.
	Receive(batch []*packet.Frame) int
	// Transmit takes the frames, all of them: what cannot be sent is released
	// and counted in Stats. It returns how many were accepted.
	Transmit(batch []*packet.Frame) int
	// Flush makes the kernel send what Transmit queued, and takes back frames
	// whose transmission is complete. Workers call it once per round.
	Flush()
	// FD is what epoll(7) or poll(2) watches for input, or -1 when there is
	// nothing to watch (then Receive is asked every millisecond).
	FD() int
	// Info says what this port is; it does not change during its life, except
	// for Up.
	Info() Info
	// Stats counts since the port was opened. It may be called at any time.
	Stats() Stats
	// Close ends the port and gives its frames back. Frames that the caller
	// still holds stay valid and may be released later.
	Close() error
}

// Heritable is a port with which another process can go on, in the very state in which it
// is. Of the two processes, the first to receive gets what waits in the kernel.
type Heritable interface {
	Port
	// Descriptors are the open files that make the port, in the order in which its
	// driver's Adopt takes them. They stay this port's: the other process gets
	// copies, and neither sees that the other closes its own.
	Descriptors() []int
	// Rest has Receive read nothing more from the kernel: it hands out what was read
	// already, and then nothing.
	Rest()
}

// Info describes a port.
type Info struct {
	Driver string     `json:"driver"`       // memory, pcap, afxdp, afpacket, tap, underlay, uplink
	Mode   string     `json:"mode"`         // the driver's own words: "native, copy", "generic, copy", "geneve 192.168.77.102:6081"
	Why    string     `json:"why,omitzero"` // why this driver and mode were chosen
	MAC    packet.MAC `json:"mac"`
	MTU    int        `json:"mtu"`
	Up     bool       `json:"up"`              // the link is there and up
	Tunnel bool       `json:"tunnel,omitzero"` // frames carry Frame.Tunnel both ways
	// TunnelTo is where a tunnel leads to; the zero value if entries choose that (tun_dst).
	TunnelTo TunnelEnd `json:"tunnelTo,omitzero"`
	Aside    bool      `json:"aside,omitzero"` // frames are sent to it by its number only, never by flooding
	// OffloadLink names the interface to the kernel's offload entries: its index, where they
	// may begin at this port and lead to it; 0 else.
	OffloadLink uint32 `json:"offloadLink,omitzero"`
	// Carries says which undone work of frames Transmit passes on; it refuses
	// frames with any other.
	Carries Carries `json:"carries,omitzero"`
}

// TunnelEnd is the only far end of a tunnel port.
type TunnelEnd struct {
	Address netip.Addr `json:"address"`
	// Network is the virtual network of all frames, if AnyNetwork is not set.
	Network    uint32 `json:"network,omitzero"`
	AnyNetwork bool   `json:"anyNetwork,omitzero"`
}

// Stats counts frames and bytes as the switch sees them: received = handed out
// by Receive, sent = accepted by Transmit.
type Stats struct {
	RxPackets uint64 `json:"rxPackets"`
	RxBytes   uint64 `json:"rxBytes"`
	RxDropped uint64 `json:"rxDropped"`
	RxErrors  uint64 `json:"rxErrors"`
	TxPackets uint64 `json:"txPackets"`
	TxBytes   uint64 `json:"txBytes"`
	TxDropped uint64 `json:"txDropped"`
	TxErrors  uint64 `json:"txErrors"`
	// A tunnel counts packets as they are on the wire. RxJoined of those received came to
	// the switch in one frame with others. TxSplit of those sent are segments beyond the
	// first of a frame of the switch.
	RxJoined uint64 `json:"rxJoined,omitzero"`
	TxSplit  uint64 `json:"txSplit,omitzero"`
	// Reasons counts every drop and error by its reason, in the driver's words. Examples
	// are "tx ring full", "no free frame" and "outer source is not a known Node".
	Reasons map[string]uint64 `json:"reasons,omitzero"`
}
