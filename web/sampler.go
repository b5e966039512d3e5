package web

import (
	"context"
	"sync"
	"time"
)

const (
	// eventPeriod is how often counters are told.
	eventPeriod = time.Second
	// maxStreams is how many may be told of one Node at once.
	maxStreams = 8
	// freshFor is how old counters may be that another stream asked for.
	freshFor = eventPeriod / 2
)

// sampler asks for counters, once for all streams.
type sampler struct {
	ask func(context.Context) ([]byte, error)

	mu          sync.Mutex
	streams     int
	last        []byte
	failed      error
	requestedAt time.Time
}

// join makes a place for a stream, if there is one.
func (s *sampler) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *sampler) removeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// counters are those of now, or of a moment ago.
func (s *sampler) counters(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.requestedAt) > freshFor {
		s.last, s.failed = s.ask(ctx)
		s.requestedAt = time.Now()
	}
	return s.last, s.failed
}
