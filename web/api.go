package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What is asked of the agent: the same paths as at its socket, below /api. Only
// what shows something is handed on; what flushes, attaches or takes over stays
// with those who may open the socket.

// shown are the questions that the page may ask.
var shown = []string{
	"GET /readyz", "GET /flows", "GET /groups", "GET /meters", "GET /ports", "GET /workers", "GET /tables", "GET /conntrack", "GET /conntrack/stats",
	"GET /cache", "GET /fdb", "GET /drops", "GET /drops/last", "GET /watches", "GET /services", "GET /pods", "GET /policies", "GET /egresses",
	"GET /trafficcontrols", "GET /cookies", "GET /explain", "GET /object", "GET /nodes", "POST /trace", "POST /trace/live",
}

// maxRequest bounds the body of a trace's request, in bytes.
const maxRequest = 64 << 10

// addAPI hands on the questions that are shown.
func (p *Page) addAPI(mux *http.ServeMux) {
	api := whole(http.StripPrefix("/api", http.HandlerFunc(p.handOn)))
	for _, pattern := range shown {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /api"+path, api)
	}
}

// handOn asks the Node that a question is for, or all of them together.
func (p *Page) handOn(w http.ResponseWriter, r *http.Request) {
	if p.watch != nil && r.URL.Path == "/trace/live" {
		p.watch.ServeHTTP(w, r)
	} else if n := p.at(w, r); n != nil {
		n.API.ServeHTTP(w, r)
	}
}

// whole hands a request on once all of its body is there, and no larger than it may
// be: whoever answers waits for no slow sender.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, fmt.Sprintf("413: a request has %d bytes at most", maxRequest), http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, "400: the request is not whole: "+err.Error(), http.StatusBadRequest)
		default:
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			next.ServeHTTP(w, r)
		}
	})
}
