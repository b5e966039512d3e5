package switchd

import (
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The last lost packets, for several that ask. The workers' rings (dataplane/lost.go) have
// one reader, which is here; each caller gives the number from which it has not seen any.

// lostKept is how many lost packets are kept.
const lostKept = 4096

// lostRing is the last lost packets, numbered from 0.
type lostRing struct {
	mu   sync.Mutex
	ring []telemetry.DroppedPacket
	next uint64 // the number of the next one
}

// LostSince implements door.Packets.
func (s *Switch) LostSince(no uint64) (all []telemetry.DroppedPacket, next, missed uint64) {
	l := &s.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, missed := s.Switch.DroppedPackets()
	for _, p := range fresh {
		l.keep(p)
	}
	first := max(no, l.next-uint64(len(l.ring)))
	for n := first; n < l.next; n++ {
		all = append(all, l.ring[n%lostKept])
	}
	return all, l.next, missed
}

// keep puts a packet in the place of the oldest.
func (l *lostRing) keep(p telemetry.DroppedPacket) {
	if len(l.ring) < lostKept {
		l.ring = append(l.ring, p)
	} else {
		l.ring[l.next%lostKept] = p
	}
	l.next++
}
