package telemetry

import (
	"time"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// FlowStats is an installed entry with its counters.
type FlowStats struct {
	*flow.Entry
	Packets, Bytes uint64
	Duration       time.Duration // since installation
	Idle           time.Duration // since the last packet, or installation
	Learned        bool
}

// GroupStats is an installed group with its counters; Buckets is in the order
// of the group's buckets.
type GroupStats struct {
	*flow.Group
	Packets, Bytes uint64
	Buckets        []BucketStats
}

// BucketStats are the counters of one bucket.
type BucketStats struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// MeterStats is an installed meter with its counters; Dropped is by band.
type MeterStats struct {
	*flow.Meter `json:"meter"`
	Packets     uint64   `json:"packets"`
	Bytes       uint64   `json:"bytes"`
	Dropped     []uint64 `json:"dropped"`
}

// TableStats is a table with its counters.
type TableStats struct {
	ID            uint8                 `json:"id"`
	Name          string                `json:"name"`
	Shape         lookup.Shape          `json:"shape"`
	Entries       int                   `json:"entries"`
	Learned       int                   `json:"learned"`
	Masks         int                   `json:"masks"` // distinct masks: subtables of the lookup
	Lookups       uint64                `json:"lookups"`
	Hits          uint64                `json:"hits"`
	Times         lookup.TableTimes     `json:"times"`
	DropsByReason map[DropReason]uint64 `json:"drops,omitzero"`
}

// PortConfig is the controller's configuration of a port (OpenFlow's OFPT_PORT_MOD).
type PortConfig struct {
	Down      bool `json:"down,omitzero"`      // no frame passes, either way
	NoReceive bool `json:"noReceive,omitzero"` // frames that come are dropped
	NoForward bool `json:"noForward,omitzero"` // frames that would leave are dropped
	NoFlood   bool `json:"noFlood,omitzero"`   // FLOOD and NORMAL's floods leave it out; ALL does not
	// NoPacketIn is only stored, because a table-miss never sends a packet to a controller.
	NoPacketIn bool `json:"noPacketIn,omitzero"`
}

// PortStats is a port with its counters.
type PortStats struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	// Worker is the number of the worker that receives from it. Load is the part of that worker's
	// time that this port's packets took recently, 0 to 1.
	Worker     int     `json:"worker"`
	Load       float64 `json:"load"`
	ports.Info `json:"info"`
	// Config is the controller's configuration.
	Config PortConfig `json:"config,omitzero"`
	// Stats has all packets; ByKernel has those that passed by offload entries.
	ports.Stats `json:"stats"`
	ByKernel    KernelStats `json:"byKernel"`
	MACs        MACStats    `json:"macs"`
}

// MACStats counts the addresses that NORMAL learned at a port, and the frames whose address it
// did not learn.
type MACStats struct {
	Learned int    `json:"learned"` // addresses that count for the port's share now
	Full    uint64 `json:"full"`    // frames: the port's share of the table was full
	Foreign uint64 `json:"foreign"` // frames: port security gives the address to another port
}

// MACTableStats counts the addresses that NORMAL learns.
type MACTableStats struct {
	Current int    `json:"current"`
	Max     int    `json:"max"`
	Learned uint64 `json:"learned"` // so far
	Expired uint64 `json:"expired"` // removed because no packet came
	Moved   uint64 `json:"moved"`   // seen at another port than before
}

// LearnedMAC is a row of fdb-show.
type LearnedMAC struct {
	Port uint32     `json:"ofPort"`
	VLAN uint16     `json:"vlan"`
	MAC  packet.MAC `json:"mac"`
	Age  int64      `json:"ageNS"` // nanoseconds since its last packet
}

// WorkerStats is what a worker has done since the switch was made.
type WorkerStats struct {
	No       int           `json:"worker"`
	Ports    []uint32      `json:"ofPorts,omitzero"` // that it receives from, by number
	Blind    int           `json:"blind"`            // how many of them the poller cannot watch; they are polled every millisecond
	Batches  uint64        `json:"batches"`
	Packets  uint64        `json:"packets"`
	Sleeps   uint64        `json:"sleeps"`
	Working  time.Duration `json:"workingNS"`
	Spinning time.Duration `json:"spinningNS"`
	Asleep   time.Duration `json:"asleepNS"`
	// KeptAwake is how long the worker kept idle processors awake.
	KeptAwake time.Duration `json:"keptAwakeNS"`
	// Load is the part of its time that packets took in the last second, 0 to 1. The time is
	// shorter if a worker fell behind meanwhile.
	Load float64 `json:"load"`
	// Wakes counts how long the worker took to run after a wake-up in its sleep, measured every
	// five seconds. Bucket i is for less than 2^i microseconds.
	Wakes WakeCounts `json:"wakes"`
}

// WakeBuckets is the number of buckets of wake-up times.
const WakeBuckets = 16

// WakeCounts is a histogram of wake-up times.
type WakeCounts [WakeBuckets]uint64
