package dataplane

import "sync/atomic"

// What takes a shortcut is credited to the entries, tables, groups and ports of
// the walk that it stands for: when somebody asks, once a second, and when it
// ends.

// ShortcutEvent is something that is counted of shortcuts. The list is closed:
// dumps and metrics come from it.
type ShortcutEvent uint8

// The events.
const (
	ShortcutPut ShortcutEvent = iota
	ShortcutLate
	ShortcutNoRoom
	ShortcutWithdrawn
	ShortcutEnded
	ShortcutUnused
	ShortcutTraced
	numShortcutEvents
)

var shortcutTexts = [numShortcutEvents]struct{ name, sentence string }{
	ShortcutPut:       {"put", "Shortcuts that the kernel was given."},
	ShortcutLate:      {"late", "Shortcuts that it was not, because pipeline, ports or connection had changed meanwhile."},
	ShortcutNoRoom:    {"no_room", "Shortcuts that it was not, because there was no room, or none left for the port."},
	ShortcutWithdrawn: {"withdrawn", "Shortcuts that a change of the pipeline, the ports or the learning tables made void."},
	ShortcutEnded:     {"ended", "Connections that a packet of theirs, their end or a flush took out of the kernel."},
	ShortcutUnused:    {"unused", "Shortcuts that no packet took for a while."},
	ShortcutTraced:    {"traced", "Shortcuts that were taken back or not given, because a live trace watches such packets."},
}

// String is the event's name, as metrics show it.
func (e ShortcutEvent) String() string { return shortcutTexts[e].name }

// Sentence tells an operator what is counted.
func (e ShortcutEvent) Sentence() string { return shortcutTexts[e].sentence }

// ShortcutStats is the shortcuts there are, and what was counted.
type ShortcutStats struct {
	// On says whether the switch has any to give.
	On bool `json:"on"`
	// Entries may be taken now; Connections is how many connections they are of;
	// Room is how many entries there may be.
	Entries     uint64 `json:"entries"`
	Connections uint64 `json:"connections"`
	Room        uint64 `json:"room"`
	// Packets and Bytes have taken one, Lost packets did and could not be changed.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Lost    uint64 `json:"lost"`
	// Events is counts by ShortcutEvent.
	Events [numShortcutEvents]uint64 `json:"events"`
}

// Shortcuts is what the kernel forwards by itself.
func (s *Switch) Shortcuts() (st ShortcutStats) {
	c := s.shortcuts
	if c == nil {
		return st
	}
	c.creditNow()
	c.mu.Lock()
	defer c.mu.Unlock()
	st = ShortcutStats{
		On: true, Entries: uint64(c.current), Connections: uint64(len(c.byConn)), Room: uint64(c.kernel.Room()),
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Lost: c.kernel.Lost(),
	}
	for i := range c.events {
		st.Events[i] = c.events[i].Load()
	}
	return st
}

func (s *shortcuts) count(e ShortcutEvent) { s.events[e].Add(1) }

// creditNow credits what has passed until now, and keeps its connections alive.
func (s *shortcuts) creditNow() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creditAll()
	for _, at := range s.byConn {
		s.tellConntrack(at, s.sw.clock())
	}
}

// creditAll is creditNow under the lock.
func (s *shortcuts) creditAll() {
	now := s.sw.clock()
	for at := range s.cuts {
		if s.cuts[at].path != nil { // even one that was dropped, until its place is free
			s.credit(uint32(at), now)
		}
	}
}

// credit tells entries and ports what has taken a shortcut since it was last
// called.
func (s *shortcuts) credit(at uint32, now int64) {
	c, k := &s.cuts[at], s.kernel.Shortcut(at)
	packets, bytes := k.Packets.Load(), k.Bytes.Load()
	if packets == c.packets && bytes == c.bytes {
		return
	}
	more, size := packets-c.packets, bytes-c.bytes
	c.packets, c.bytes, c.last = packets, bytes, now
	s.conns[c.conn].moved = true
	s.packets.Add(more)
	s.bytes.Add(size)
	c.path.tellDirectly(more, size, now)
	c.in.kernel.rxPackets.Add(more)
	c.in.kernel.rxBytes.Add(size)
	c.out.kernel.txPackets.Add(more)
	c.out.kernel.txBytes.Add(size)
}

// tellDirectly credits packets, the last of which came at now, to a path's entries.
func (p *path) tellDirectly(packets, bytes uint64, now int64) {
	creditVisits(p.visits, packets, bytes, now)
	for _, g := range p.groups {
		g.packets.Add(packets)
		g.bytes.Add(bytes)
	}
}

// creditVisits credits packets to the entries and tables that they met.
func creditVisits(visits []visited, packets, bytes uint64, now int64) {
	for i := range visits {
		v := &visits[i]
		v.table.lookups.Add(packets)
		if v.entry != nil {
			v.table.hits.Add(packets)
			v.entry.packets.Add(packets)
			v.entry.bytes.Add(bytes)
			v.entry.usedAt(now)
		}
	}
}

// kernelCounts is what came and went through a port by shortcuts.
type kernelCounts struct{ rxPackets, rxBytes, txPackets, txBytes atomic.Uint64 }

// KernelStats is the part of a port's counters that passed by shortcuts.
type KernelStats struct {
	RxPackets uint64 `json:"rxPackets"`
	RxBytes   uint64 `json:"rxBytes"`
	TxPackets uint64 `json:"txPackets"`
	TxBytes   uint64 `json:"txBytes"`
}

func (c *kernelCounts) stats() KernelStats {
	return KernelStats{c.rxPackets.Load(), c.rxBytes.Load(), c.txPackets.Load(), c.txBytes.Load()}
}
