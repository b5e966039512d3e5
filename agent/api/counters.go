package api

import (
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/diagram"
)

// Counters are the counters at one moment.
type Counters struct {
	// AtNS is that moment, on a monotonic clock.
	AtNS time.Duration `json:"atNS"`
	// Generation changes when entries of the pipeline change.
	Generation  uint64        `json:"generation"`
	Pipeline    *diagram.Map  `json:"pipeline"`
	Ports       []PortRecord  `json:"ports"`
	Connections ConnectionUse `json:"connections"`
}

// PacketCountersRecord has all packet counters of the switch, at one moment.
type PacketCountersRecord struct {
	Ports []PortPacketCounters `json:"ports"`
	// Own counts packets that the switch makes itself, Gone those of removed ports.
	Own   telemetry.PacketCounters `json:"own"`
	Gone  telemetry.PacketCounters `json:"gone"`
	Total telemetry.PacketCounters `json:"total"`
	// Fault says where counters do not add up; empty if they do.
	Fault string `json:"fault,omitempty"`
}

// PortPacketCounters are the counters of a port. KernelReceived and KernelSent count packets
// that the kernel forwards without the switch.
type PortPacketCounters struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	telemetry.PacketCounters
	KernelReceived uint64 `json:"kernelReceived,omitempty"`
	KernelSent     uint64 `json:"kernelSent,omitempty"`
	// Joined counts packets beyond the first in frames that a tunnel received as one. Split
	// counts packets into which such frames were cut for the tunnel.
	Joined uint64 `json:"joined,omitempty"`
	Split  uint64 `json:"split,omitempty"`
}
