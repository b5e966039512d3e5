package ports

import (
	"net/netip"
	"slices"
	"sync"
)

// DropSample is the last packet that a port dropped for a reason.
type DropSample struct {
	Source netip.Addr `json:"source,omitzero"` // the sender, or for a tunnel's frame to send, its destination
	Length int        `json:"length"`          // in bytes; 0 without a packet
	Head   []byte     `json:"head,omitzero"`   // the first bytes, at most DropSampleLen
}

// DropSampleLen is how many bytes of a sample are kept.
const DropSampleLen = 128

// Collector is a port that keeps samples for some of its drop reasons. Any goroutine may call it.
type Collector interface {
	DropSample(reason string) DropSample
}

// DropSamples are a port's samples, by the text of the reason. Any goroutine may call it. Only
// goroutines that drop packets or read samples wait for each other.
type DropSamples struct {
	mu sync.Mutex
	of map[string]*DropSample
}

// Keep keeps a packet's first bytes, in place of the previous packet.
func (s *DropSamples) Keep(reason string, source netip.Addr, head []byte, length int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[reason]
	if x == nil {
		if s.of == nil {
			s.of = map[string]*DropSample{}
		}
		x = &DropSample{}
		s.of[reason] = x
	}
	x.Source, x.Length = source, length
	x.Head = append(x.Head[:0], head[:min(len(head), DropSampleLen)]...)
}

// DropSample implements Collector.
func (s *DropSamples) DropSample(reason string) DropSample {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[reason]
	if x == nil {
		return DropSample{}
	}
	return DropSample{x.Source, x.Length, slices.Clone(x.Head)}
}
