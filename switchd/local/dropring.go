package local

import (
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The last dropped packets, for several callers. The workers' rings (dataplane/lost.go) may have
// only one reader, which is here. A caller gives the number of the first packet that it has not
// seen.

// dropsKept is the number of stored dropped packets.
const dropsKept = 4096

// dropRing has the last dropped packets, numbered from 0.
type dropRing struct {
	mu   sync.Mutex
	ring []telemetry.DroppedPacket
	next uint64 // the number of the next one
}

// DropsSince implements door.Packets.
func (s *Switch) DropsSince(no uint64) (all []telemetry.DroppedPacket, next, missed uint64) {
	l := &s.drops
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, missed := s.Switch.DroppedPackets()
	for _, p := range fresh {
		l.add(p)
	}
	first := max(no, l.next-uint64(len(l.ring)))
	for n := first; n < l.next; n++ {
		all = append(all, l.ring[n%dropsKept])
	}
	return all, l.next, missed
}

// add stores a packet, in place of the oldest if the ring is full.
func (l *dropRing) add(p telemetry.DroppedPacket) {
	if len(l.ring) < dropsKept {
		l.ring = append(l.ring, p)
	} else {
		l.ring[l.next%dropsKept] = p
	}
	l.next++
}
