package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/antrail/antrail/internal/halfopen"
)

// writeTime is how long a piece of an answer may take to be taken. A whole answer,
// such as a trace's, has no end of its own.
const writeTime = 10 * time.Second

// limits bound what peers can hold of the page. A browser has six connections, and a
// stranger's is closed with the answer.
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

// patient waits for whoever reads an answer, but not forever.
type patient struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *patient) Write(b []byte) (int, error) {
	// A writer without deadlines is no connection.
	if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection's own writer.
func (w *patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }
