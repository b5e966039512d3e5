package ports

import (
	"net/netip"
	"slices"
	"sync"
)

// DropSample is the last packet that a port dropped for a reason.
type DropSample struct {
	Source netip.Addr `json:"source,omitzero"` // that it came from, in a tunnel, or was to go to
	Length int        `json:"length"`          // in bytes; 0 when there was none
	Head   []byte     `json:"head,omitzero"`   // the first ones, DropSampleLen at most
}

// DropSampleLen is how many bytes of a sample are kept.
const DropSampleLen = 128

// Collector is a port that keeps samples of some of its reasons. Any goroutine
// may ask it.
type Collector interface {
	DropSample(reason string) DropSample
}

// DropSamples are a port's, by the text of the reason. Any goroutine may call it; only
// who loses packets waits for others that do.
type DropSamples struct {
	mu sync.Mutex
	of map[string]*DropSample
}

// Keep keeps a packet's first bytes, in place of the packet before.
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
