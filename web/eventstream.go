package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Counters as they change: GET /events is a stream of Server-Sent Events (HTML Living Standard,
// section 9.2). The data of an event "counters" is the agent's answer to GET /counters in one
// line. The first event comes at once, so that the second gives the first rates. An event
// "fault" is a sentence, which holds until the next counters.

func (p *Page) answerEvents(w http.ResponseWriter, r *http.Request) {
	n := p.at(w, r)
	if n == nil {
		return
	}
	s := &n.sampler
	if !s.join() {
		http.Error(w, fmt.Sprintf("there are %d readers of counters already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.removeStream()
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(eventPeriod)
	defer tick.Stop()
	for s.writeEvent(w, r) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// writeEvent writes one event.
func (s *sampler) writeEvent(w http.ResponseWriter, r *http.Request) error {
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
