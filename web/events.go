package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Counters as they change: GET /events is a stream of Server-Sent Events (HTML
// Living Standard, section 9.2). Each event "counters" is what GET /counters of
// the agent answers, in one line; the first comes at once, so that the second
// makes the first rates. An event "fault" is a sentence, and the next counters
// end it.

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

	mu      sync.Mutex
	streams int
	last    []byte
	failed  error
	asked   time.Time
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

func (s *sampler) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// counters are those of now, or of a moment ago.
func (s *sampler) counters(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) > freshFor {
		s.last, s.failed = s.ask(ctx)
		s.asked = time.Now()
	}
	return s.last, s.failed
}

func (p *Page) answerEvents(w http.ResponseWriter, r *http.Request) {
	n := p.at(w, r)
	if n == nil {
		return
	}
	s := &n.sampler
	if !s.join() {
		http.Error(w, fmt.Sprintf("counters are told to %d readers already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(eventPeriod)
	defer tick.Stop()
	for s.tell(w, r) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// tell writes one event.
func (s *sampler) tell(w http.ResponseWriter, r *http.Request) error {
	name := "counters"
	text, err := s.counters(r.Context())
	if err != nil {
		name, text = "fault", []byte(err.Error())
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, oneLine(text))
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// oneLine is text without line breaks, which would end an event's field.
func oneLine(text []byte) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimSpace(string(text)))
}
