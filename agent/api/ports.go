package api

import (
	"fmt"
	"time"
)

// PortRecord is a port with its counters.
type PortRecord struct {
	No      uint32            `json:"ofPort"`
	Name    string            `json:"name"`
	Pod     string            `json:"pod,omitempty"` // namespace/name
	Link    string            `json:"link"`
	MAC     string            `json:"mac"`
	MTU     int               `json:"mtu"`
	Up      bool              `json:"up"`
	Missing string            `json:"missing,omitempty"` // why a wanted port is not in the switch
	Driver  string            `json:"driver"`
	Mode    string            `json:"mode"`
	Why     string            `json:"why,omitempty"`
	Worker  int               `json:"worker"` // the worker that receives from it
	Load    float64           `json:"load"`   // recent part of the worker's time, 0 to 1
	Rx      Counts            `json:"rx"`
	Tx      Counts            `json:"tx"`
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	MACs    PortMACs          `json:"macs"`
	Offload PortOffload       `json:"offload"`
}

// PortMACs are the MAC addresses that NORMAL learned at a port. NotLearned counts frames whose
// source it did not learn, by reason: macShareFull or macElsewhere.
type PortMACs struct {
	Learned    int               `json:"learned"`
	NotLearned map[string]uint64 `json:"notLearned,omitempty"`
}

// PortOffload counts what passed a port in the kernel. The port's counters include it.
type PortOffload struct {
	// On says whether connections of this port may be offloaded. Why says why not.
	On  bool   `json:"on"`
	Why string `json:"why,omitempty"`
	Rx  Counts `json:"rx"`
	Tx  Counts `json:"tx"`
}

// String is the line of dump-ports.
func (o *PortOffload) String() string {
	if !o.On {
		return "offload off: " + o.Why
	}
	return fmt.Sprintf("offload on: rx pkts=%d, bytes=%d, tx pkts=%d, bytes=%d of these passed in the kernel",
		o.Rx.Packets, o.Rx.Bytes, o.Tx.Packets, o.Tx.Bytes)
}

// WorkerRecord is a thread that moves packets.
type WorkerRecord struct {
	No      int      `json:"worker"`
	OFPorts []uint32 `json:"ofPorts"` // ports that it receives from
	Blind   int      `json:"blind"`   // ports that the worker polls every millisecond, because the kernel does not announce their frames
	Batches uint64   `json:"batches"`
	Packets uint64   `json:"packets"`
	Load    float64  `json:"load"` // recent part of its time that packets took, 0 to 1
	// The times are since the agent's start.
	WorkingNS   time.Duration `json:"workingNS"`
	SpinningNS  time.Duration `json:"spinningNS"`
	AsleepNS    time.Duration `json:"asleepNS"`
	Sleeps      uint64        `json:"sleeps"`
	KeptAwakeNS time.Duration `json:"keptAwakeNS"`     // time that idle processors were kept awake while pods talked
	Wakes       []WakeCount   `json:"wakes,omitempty"` // how soon the worker ran after a wake-up
}

// WakeCount counts wake-ups that took less than BelowUS microseconds, and at least half of it.
// The last one, 32768, also counts all longer ones.
type WakeCount struct {
	BelowUS int    `json:"belowUS"`
	Count   uint64 `json:"count"`
}
