package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/antrail/antrail/internal/halfopen"
)

// writeTime is how long a peer may take to read a piece of an answer. A complete answer, such
// as a live trace's, has no limit.
const writeTime = 10 * time.Second

// limits bound what peers can hold of the page. A browser has six connections. A connection
// that is not admitted closes after the answer.
var limits = halfopen.Limits{
	PerPeer: 32, Total: 128, Header: 5 * time.Second, Body: 5 * time.Second, Idle: 2 * time.Minute,
	HeaderBytes: 16 << 10, BodyBytes: maxRequest,
}

// Serve serves a page until ctx ends, and closes the listener. A peer that does not
// finish its requests loses its oldest connections, and holds no other peer up.
func Serve(ctx context.Context, ln net.Listener, p *Page) error {
	s := halfopen.Server{Limits: limits, Handler: p, Name: "page", Log: p.log}
	return s.Serve(ctx, ln)
}

// patient waits for the reader of an answer, at most writeTime for each piece.
type patient struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *patient) Write(b []byte) (int, error) {
	// Only tests have writers without deadlines.
	if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection's own writer.
func (w *patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }
