package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxConnections is how many may be open at once; more wait. A browser has six, and
	// a stranger's are closed with the answer.
	maxConnections = 64
	// headerTime is how long a request may take to come.
	headerTime = 5 * time.Second
	// idleTime is how long a connection may wait for the next one.
	idleTime = 2 * time.Minute
	// writeTime is how long a piece of an answer may take to be taken. A whole answer,
	// such as a trace's, has no end of its own.
	writeTime = 10 * time.Second
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 16 << 10
)

// Serve serves a page until ctx ends, and closes the listener. Requests come whole
// within headerTime, so that who connects and says nothing holds a place no longer.
func Serve(ctx context.Context, ln net.Listener, p *Page) error {
	s := &http.Server{Handler: p, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(netutil.LimitListener(ln, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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
