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
	Missing string            `json:"missing,omitempty"` // why the port is wanted and not in the switch
	Driver  string            `json:"driver"`
	Mode    string            `json:"mode"`
	Why     string            `json:"why,omitempty"`
	Worker  int               `json:"worker"` // that receives from it
	Load    float64           `json:"load"`   // part of the worker's time, lately: 0 to 1
	Rx      Counts            `json:"rx"`
	Tx      Counts            `json:"tx"`
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	MACs    PortMACs          `json:"macs"`
	Offload PortOffload       `json:"offload"`
}

// PortMACs are the MAC addresses that NORMAL learned at a port. NotLearned counts the
// frames whose source it did not learn, by macShareFull or macElsewhere.
type PortMACs struct {
	Learned    int               `json:"learned"`
	NotLearned map[string]uint64 `json:"notLearned,omitempty"`
}

// PortOffload is what passed through a port in the kernel; it is part of the
// port's counters.
type PortOffload struct {
	// On says whether connections between this port and others may be offloaded;
	// Why says why not.
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
	OFPorts []uint32 `json:"ofPorts"` // that it receives from
	Blind   int      `json:"blind"`   // ports that the worker polls every millisecond, because the kernel does not announce their frames
	Batches uint64   `json:"batches"`
	Packets uint64   `json:"packets"`
	Load    float64  `json:"load"` // part of its time that packets took lately: 0 to 1
	// The times are since the agent's start.
	WorkingNS   time.Duration `json:"workingNS"`
	SpinningNS  time.Duration `json:"spinningNS"`
	AsleepNS    time.Duration `json:"asleepNS"`
	Sleeps      uint64        `json:"sleeps"`
	KeptAwakeNS time.Duration `json:"keptAwakeNS"`     // idle processors, while pods talked
	Wakes       []WakeCount   `json:"wakes,omitempty"` // called in its sleep, how soon it ran
}

// WakeCount is how many wake-ups took less than so many microseconds, and no
// less than half of it. The last one, of 32768, is for all longer ones too.
type WakeCount struct {
	BelowUS int    `json:"belowUS"`
	Count   uint64 `json:"count"`
}
