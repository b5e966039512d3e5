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

// SumsRecord is all sums of the switch, at one moment.
type SumsRecord struct {
	Ports []PortSums `json:"ports"`
	// Own is what the switch makes itself, Gone the sums of ports that are gone.
	Own   telemetry.Sums `json:"own"`
	Gone  telemetry.Sums `json:"gone"`
	Total telemetry.Sums `json:"total"`
	// Fault says where sums do not agree; empty: they do.
	Fault string `json:"fault,omitempty"`
}

// PortSums is the sums of a port. What the kernel forwards by itself comes and
// goes beside them.
type PortSums struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	telemetry.Sums
	KernelReceived uint64 `json:"kernelReceived,omitempty"`
	KernelSent     uint64 `json:"kernelSent,omitempty"`
	// Joined is packets beyond the first that came in one frame from the wire of a
	// tunnel, Parted those that frames were cut into for it.
	Joined uint64 `json:"joined,omitempty"`
	Parted uint64 `json:"parted,omitempty"`
}
