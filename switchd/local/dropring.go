package local

import (
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
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
func (s *Switch) DropsSince(no uint64) (a door.DropsAnswer) {
	a.Ports = s.PortsMark()
	l := &s.drops
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, missed := s.DroppedPackets()
	for _, p := range fresh {
		l.add(p)
	}
	first := max(no, l.next-uint64(len(l.ring)))
	for n := first; n < l.next; n++ {
		a.Packets = append(a.Packets, l.ring[n%dropsKept])
	}
	a.Next, a.Missed = l.next, missed
	return a
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
