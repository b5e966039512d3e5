package door

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// Streams: a line of JSON for each event.

// answerLive streams walks until the caller hangs up, or until it has the requested number. The
// walks of a caller that does not read are lost and counted. No worker waits for it.
func (s *Server) answerLive(w http.ResponseWriter, r *http.Request) {
	var q LiveRequest
	err := read(r, &q)
	var l Live
	if err == nil {
		l, err = s.sw.TraceLive(&q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer l.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := stream{json.NewEncoder(w), http.NewResponseController(w)}
	err = out.send(&LiveLine{})
	for err == nil {
		err = out.walk(r, l)
	}
}

// stream sends lines of JSON as they come.
type stream struct {
	to    *json.Encoder
	flush *http.ResponseController
}

func (s *stream) send(v any) error {
	if err := s.to.Encode(v); err != nil {
		return err
	}
	return s.flush.Flush()
}

// walk sends the next walk, or counts if there is none for a while. An error ends the stream.
func (s *stream) walk(r *http.Request, l Live) error {
	ctx, cancel := context.WithTimeout(r.Context(), countsInterval)
	defer cancel()
	t, err := l.Next(ctx)
	counts := l.Counts()
	switch {
	case err == io.EOF:
		return errors.Join(s.send(&LiveLine{Counts: &counts, End: true}), io.EOF)
	case r.Context().Err() != nil:
		return r.Context().Err()
	}
	return s.send(&LiveLine{Trace: t, Counts: &counts})
}
