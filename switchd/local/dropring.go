package local

import (
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The last dropped packets, for several callers. The workers' rings (dataplane/lost.go) have one
// reader, which is here. Each caller gives the number of the next packet that it has not seen.

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
		l.keep(p)
	}
	first := max(no, l.next-uint64(len(l.ring)))
	for n := first; n < l.next; n++ {
		all = append(all, l.ring[n%dropsKept])
	}
	return all, l.next, missed
}

// keep replaces the oldest packet.
func (l *dropRing) keep(p telemetry.DroppedPacket) {
	if len(l.ring) < dropsKept {
		l.ring = append(l.ring, p)
	} else {
		l.ring[l.next%dropsKept] = p
	}
	l.next++
}
