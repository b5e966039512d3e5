package flow

// Match is the condition of an entry: Key.And(Mask) == Value. Value has no bit
// outside Mask.
type Match struct {
	Value, Mask Key
}

// Entry is one flow entry. Its identity within a pipeline is table, priority
// and match.
type Entry struct {
	Actions     []Action // first, because the garbage collector reads only up to the last pointer
	Match       Minimatch
	Table       uint8
	Priority    uint16 // 32768 if the text has none
	Cookie      uint64
	IdleTimeout uint16 // seconds, 0 for never
	HardTimeout uint16 // seconds, 0 for never
	SendFlowRem bool   // send the controller a flow-removed message
}

// GroupType is how a group picks buckets.
type GroupType uint8

// Group types. GroupSelect picks one bucket by the packet's hash and the weights.
// GroupAll runs every bucket on a copy. GroupIndirect has one bucket.
// GroupFastFailover takes the first live one.
const (
	GroupAll GroupType = iota
	GroupSelect
	GroupIndirect
	GroupFastFailover
)

// Group is an OpenFlow group.
type Group struct {
	ID      uint32
	Type    GroupType
	Buckets []Bucket
}

// Bucket is one choice of a group.
type Bucket struct {
	ID     uint32
	Weight uint16 // select groups only; 1 if the text has none
	// WatchPort is the port whose state decides whether a bucket of a
	// fast-failover group is live; 0 for none.
	WatchPort uint32
	Actions   []Action
}

// Meter is a rate limit: packets above it are dropped.
type Meter struct {
	ID    uint32 `json:"id"`
	PktPS bool   `json:"pktps"`          // rate is packets per second, otherwise kilobits per second
	Burst bool   `json:"burst,omitzero"` // BurstSize is used
	Stats bool   `json:"stats,omitzero"` // as written; every meter counts in antrail
	Bands []Band `json:"bands"`
}

// Band is one band of a meter; only type drop exists here.
type Band struct {
	Rate      uint32 `json:"rate"`
	BurstSize uint32 `json:"burstSize,omitzero"`
}

// Program is a whole pipeline as data: its tables by name, entries, groups and
// meters. Packets enter at table First.
type Program struct {
	Names   *Names
	First   uint8
	Entries []*Entry
	Groups  []*Group
	Meters  []*Meter
}
