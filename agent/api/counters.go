package api

import (
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/diagram"
)

// Counters are those of one moment.
type Counters struct {
	// AtNS is that moment, of a clock that never goes back.
	AtNS time.Duration `json:"atNS"`
	// Generation changes with the entries of the pipeline.
	Generation  uint64        `json:"generation"`
	Pipeline    *diagram.Map  `json:"pipeline"`
	Ports       []PortRecord  `json:"ports"`
	Connections ConnectionUse `json:"connections"`
}

// PacketCountersRecord is all sums of the switch, at one moment.
type PacketCountersRecord struct {
	Ports []PortPacketCounters `json:"ports"`
	// Own is what the switch makes itself, Gone the sums of ports that are gone.
	Own   telemetry.PacketCounters `json:"own"`
	Gone  telemetry.PacketCounters `json:"gone"`
	Total telemetry.PacketCounters `json:"total"`
	// Fault says where sums do not agree; empty: they do.
	Fault string `json:"fault,omitempty"`
}

// PortPacketCounters is the sums of a port. What the kernel forwards by itself comes and
// goes beside them.
type PortPacketCounters struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	telemetry.PacketCounters
	KernelReceived uint64 `json:"kernelReceived,omitempty"`
	KernelSent     uint64 `json:"kernelSent,omitempty"`
	// Joined is packets beyond the first that came in one frame from the wire of a
	// tunnel, Parted those that frames were cut into for it.
	Joined uint64 `json:"joined,omitempty"`
	Split  uint64 `json:"split,omitempty"`
}
