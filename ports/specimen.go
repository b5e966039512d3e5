package ports

import (
	"net/netip"
	"slices"
	"sync"
)

// Specimen is the last packet that a port dropped for a reason.
type Specimen struct {
	Source netip.Addr `json:"source,omitzero"` // that it came from, in a tunnel, or was to go to
	Length int        `json:"length"`          // in bytes; 0 when there was none
	Head   []byte     `json:"head,omitzero"`   // the first ones, SpecimenLen at most
}

// SpecimenLen is how many bytes of a specimen are kept.
const SpecimenLen = 128

// Collector is a port that keeps specimens of some of its reasons. Any goroutine
// may ask it.
type Collector interface{ Specimen(reason string) Specimen }

// Specimens are a port's, by the text of the reason. Any goroutine may call it; only
// who loses packets waits for others that do.
type Specimens struct {
	mu sync.Mutex
	of map[string]*Specimen
}

// Keep keeps a packet's first bytes, in place of the packet before.
func (s *Specimens) Keep(reason string, source netip.Addr, head []byte, length int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[reason]
	if x == nil {
		if s.of == nil {
			s.of = map[string]*Specimen{}
		}
		x = &Specimen{}
		s.of[reason] = x
	}
	x.Source, x.Length = source, length
	x.Head = append(x.Head[:0], head[:min(len(head), SpecimenLen)]...)
}

// Specimen implements Collector.
func (s *Specimens) Specimen(reason string) Specimen {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[reason]
	if x == nil {
		return Specimen{}
	}
	return Specimen{x.Source, x.Length, slices.Clone(x.Head)}
}
