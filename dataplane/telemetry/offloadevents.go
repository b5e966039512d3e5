package telemetry

// OffloadEvent is a counted event of the offload. The list is closed: dumps and metrics come from
// it.
type OffloadEvent uint8

// The events.
const (
	OffloadPut OffloadEvent = iota
	OffloadLate
	OffloadNoRoom
	OffloadWithdrawn
	OffloadEnded
	OffloadUnused
	OffloadTraced
	OffloadNoWay
	NumOffloadEvents
)

var offloadTexts = [NumOffloadEvents]struct{ name, sentence string }{
	OffloadPut:       {"put", "Entries that the kernel was given."},
	OffloadLate:      {"late", "Entries that were not given, because the pipeline, the ports or the connection had changed meanwhile."},
	OffloadNoRoom:    {"no_room", "Entries that were not given, because there was no room, or none left for the port."},
	OffloadWithdrawn: {"withdrawn", "Entries that a change of the pipeline, the ports, the learning tables, the Nodes or a way to them made invalid."},
	OffloadEnded:     {"ended", "Connections that left the kernel: by a packet that changed them, by their end, or by a flush."},
	OffloadUnused:    {"unused", "Entries that no packet used for a while."},
	OffloadTraced:    {"traced", "Entries that were removed or not given, because a live trace watches these packets."},
	OffloadNoWay:     {"no_way", "Entries that were not given, because the tunnel's port has to carry packets to or from that Node itself."},
}

// String is the event's name, as metrics show it.
func (e OffloadEvent) String() string { return offloadTexts[e].name }

// Sentence tells an operator what the event counts.
func (e OffloadEvent) Sentence() string { return offloadTexts[e].sentence }

// OffloadStats has the offload entries and the counts.
type OffloadStats struct {
	// On says whether the switch offloads at all.
	On bool `json:"on"`
	// Entries is how many entries the kernel may use now, Connections how many connections they
	// have. Room is the largest number of entries.
	Entries     uint64 `json:"entries"`
	Connections uint64 `json:"connections"`
	Room        uint64 `json:"room"`
	// Packets and Bytes passed by an entry. Dropped packets matched one but could not be
	// rewritten.
	Packets uint64        `json:"packets"`
	Bytes   uint64        `json:"bytes"`
	Dropped uint64        `json:"dropped"`
	Events  OffloadEvents `json:"events"`
}

// OffloadEvents is counts by OffloadEvent.
type OffloadEvents [NumOffloadEvents]uint64

// KernelStats is the part of a port's counters that the kernel forwarded.
type KernelStats struct {
	RxPackets uint64 `json:"rxPackets"`
	RxBytes   uint64 `json:"rxBytes"`
	TxPackets uint64 `json:"txPackets"`
	TxBytes   uint64 `json:"txBytes"`
}
