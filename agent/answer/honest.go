package answer

import (
	"bytes"
	"maps"
	"net/http"
)

// Honest holds an answer back until it is complete. If a request to the switch failed
// meanwhile, the answer is status 502 and the reason.
func (p *Answers) Honest(next http.HandlerFunc) http.HandlerFunc {
	if p.Remote == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		failed := p.BeginAsking()
		held := &written{header: http.Header{}, status: http.StatusOK}
		next(held, r)
		if err := failed(); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		maps.Copy(w.Header(), held.header)
		w.WriteHeader(held.status)
		w.Write(held.body.Bytes())
	}
}

// refuse answers a request with an error: status 502 if the switch failed, otherwise 400.
func refuse(w http.ResponseWriter, failed func() error, err error) {
	if f := failed(); f != nil {
		http.Error(w, f.Error(), http.StatusBadGateway)
		return
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// written is a response in memory.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter, as the methods below do.
func (w *written) Header() http.Header { return w.header }

// WriteHeader records the status.
func (w *written) WriteHeader(status int) { w.status = status }

// Write appends to the body.
func (w *written) Write(b []byte) (int, error) { return w.body.Write(b) }
