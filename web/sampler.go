package web

import (
	"context"
	"sync"
	"time"
)

const (
	// eventPeriod is the interval of events with counters.
	eventPeriod = time.Second
	// maxStreams bounds the streams of one Node's counters.
	maxStreams = 8
	// freshFor is how old counters may be that were read for another stream.
	freshFor = eventPeriod / 2
)

// sampler reads counters once for all streams.
type sampler struct {
	ask func(context.Context) ([]byte, error)

	mu          sync.Mutex
	streams     int
	last        []byte
	failed      error
	requestedAt time.Time
}

// join adds a stream, unless there are maxStreams.
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

// counters are the current counters, at most freshFor old.
func (s *sampler) counters(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.requestedAt) > freshFor {
		s.last, s.failed = s.ask(ctx)
		s.requestedAt = time.Now()
	}
	return s.last, s.failed
}
