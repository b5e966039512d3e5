package gc

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// sourcePool is how many frames a source has: several batches of a worker.
const sourcePool = 8 * 64

// source is a port that always has frames, one of each connection in turn. It measures turns: the time
// from one Receive to the next.
type source struct {
	*memory.Port
	pool        *packet.HeapPool
	frame       []byte
	connections uint32
	next        uint32    // the connection of the next frame
	lastReceive time.Time // zero before the first Receive of a round
	packets     atomic.Uint64
	long        atomic.Uint64 // turns longer than longTurn
	longest     atomic.Int64  // the longest turn since the last takeState, ns
}

// takeState returns the counters, and resets the longest turn.
func (s *source) takeState() sourceState {
	return sourceState{at: time.Now(), packets: s.packets.Load(), long: s.long.Load(), longest: time.Duration(s.longest.Swap(0))}
}

// Receive makes a batch of frames.
func (s *source) Receive(batch []*packet.Frame) int {
	now := time.Now()
	if !s.lastReceive.IsZero() {
		s.noteTurn(now.Sub(s.lastReceive))
	}
	s.lastReceive = now
	n := s.pool.Get(batch)
	for _, f := range batch[:n] {
		f.SetBytes(s.frame)
		testbed.ChangePorts.Apply(f.Bytes(), s.next)
		if s.next++; s.next == s.connections {
			s.next = 0
		}
	}
	s.packets.Add(uint64(n))
	return n
}

// noteTurn counts a turn.
func (s *source) noteTurn(turn time.Duration) {
	if turn > longTurn {
		s.long.Add(1)
	}
	if turn > time.Duration(s.longest.Load()) {
		s.longest.Store(int64(turn))
	}
}

// sink is a port that drops the frames that it is to transmit.
type sink struct{ *memory.Port }

// Transmit releases the frames.
func (s *sink) Transmit(batch []*packet.Frame) int {
	packet.Release(batch)
	return len(batch)
}
