// Package ports is where frames enter and leave the switch. A Port moves batches of frames. The
// kinds of ports are packages below this one: memory (tests, replays), afxdp (a network card),
// afpacket (a pod's veth) and tap (the gateway). The tunnels to other Nodes are underlay and,
// with AF_XDP on the card, uplink. The suite in porttest tests their common behaviour; pcap reads
// and writes captures.
//
//	port.go, largepool.go     the interface; frames to receive into
//	portcounters.go           a port's counters
//	reason.go, tunnelreason.go  why a port drops a frame
//	poll.go, pollother.go     a worker's sleep until a port has frames, on Linux and elsewhere
//	awake.go, awakeother.go   keeping processors awake, on Linux and elsewhere
//	carries.go, virtio.go     undone work of a frame: which ports accept it, and its header
//	offload.go              connections that the kernel forwards
//	link.go, ethtool.go       the state of a link; its offloads and queues
//	dropsample.go               the last dropped packet, by reason
//	release.go                the features of this kernel
package ports

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// Port is one way in and out. One worker calls Receive; any worker may call Transmit and Flush.
// (A driver that needs a lock takes it once per batch.) No call blocks.
type Port interface {
	// Name is the interface name shown to people.
	Name() string
	// Receive puts up to len(batch) frames into batch and returns how many.
	// The frames belong to the caller from then on.
	Receive(batch []*packet.Frame) int
	// Transmit takes ownership of all frames. It releases the frames that cannot be sent, and
	// counts them in Stats. It returns how many were accepted.
	Transmit(batch []*packet.Frame) int
	// Flush makes the kernel send what Transmit queued, and reclaims frames whose transmission is
	// complete. Workers call it once per round.
	Flush()
	// FD is the descriptor that epoll(7) or poll(2) watches for input. It is -1 if there is none;
	// then Receive is called every millisecond.
	FD() int
	// Info describes the port. Only Up changes during the port's life.
	Info() Info
	// Stats counts since the port was opened. It may be called at any time.
	Stats() Stats
	// Close ends the port and frees its frames. Frames that the caller still holds stay valid and
	// may be released later.
	Close() error
}

// Heritable is a port that another process can take over in its current state. Of the two
// processes, the first to receive gets the frames that wait in the kernel.
type Heritable interface {
	Port
	// Descriptors are the open files of the port, in the order of its driver's Adopt. They still
	// belong to this port: the other process gets copies, and either process may close its own
	// without effect on the other.
	Descriptors() []int
	// Rest makes Receive read nothing more from the kernel. Receive returns the frames that were
	// already read, and after that none.
	Rest()
}

// Info describes a port.
type Info struct {
	Driver string     `json:"driver"`       // memory, pcap, afxdp, afpacket, tap, underlay, uplink
	Mode   string     `json:"mode"`         // in the driver's words: "native, copy", "generic, copy", "geneve 192.168.77.102:6081"
	Why    string     `json:"why,omitzero"` // why this driver and mode were chosen
	MAC    packet.MAC `json:"mac"`
	MTU    int        `json:"mtu"`
	Up     bool       `json:"up"`              // the link exists and is up
	Tunnel bool       `json:"tunnel,omitzero"` // frames carry Frame.Tunnel both ways
	// TunnelTo is the far end of a tunnel; the zero value if entries choose it (tun_dst).
	TunnelTo TunnelEnd `json:"tunnelTo,omitzero"`
	Aside    bool      `json:"aside,omitzero"` // frames are sent to it only by its number, never by flooding
	// OffloadLink is the index of the interface in the kernel's offload entries, if these may
	// begin at this port and lead to it; otherwise 0.
	OffloadLink uint32 `json:"offloadLink,omitzero"`
	// Carries says which undone work of frames Transmit accepts. It refuses frames with any
	// other.
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
	// A tunnel counts packets as they are on the wire. RxJoined is how many received packets came
	// to the switch in one frame with others. TxSplit is how many sent packets are segments of a
	// frame, beyond its first.
	RxJoined uint64 `json:"rxJoined,omitzero"`
	TxSplit  uint64 `json:"txSplit,omitzero"`
	// Reasons counts every drop and error by its reason, in the driver's words. Examples are "tx
	// ring full", "no free frame" and "outer source is not a known Node".
	Reasons map[string]uint64 `json:"reasons,omitzero"`
}
