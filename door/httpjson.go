package door

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Requests and answers: JSON, lines of a dump, or an error with its status.

// answer registers a request that does not change the switch.
func answer(mux *http.ServeMux, path string, f func(*http.Request) (any, error)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { reply(w, r, f) })
}

// change registers a request that only the controller may make while one is connected.
func (s *Server) change(mux *http.ServeMux, path string, f func(*http.Request) (any, error)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if err := s.controllers.admit(r); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		s.changing.RLock()
		defer s.changing.RUnlock()
		if s.frozen {
			http.Error(w, "another switch takes over from this one; ask again in a second", http.StatusServiceUnavailable)
			return
		}
		reply(w, r, f)
	})
}

func reply(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) {
	v, err := f(r)
	switch {
	case errors.Is(err, ErrConfined):
		http.Error(w, err.Error(), http.StatusUpgradeRequired)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if v == nil {
		v = struct{}{}
	}
	writeJSON(w, v)
}

// dump answers with a line for each value, or with JSON.
func dump[T any](w http.ResponseWriter, r *http.Request, all []T, line func(*bytes.Buffer, *T)) {
	if r.URL.Query().Get("format") == "json" {
		writeJSON(w, all)
		return
	}
	var b bytes.Buffer
	for i := range all {
		line(&b, &all[i])
		if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			b.WriteByte('\n')
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(b.Bytes())
}

// withBody calls f with a request and the JSON of its body.
func withBody[T any](f func(*http.Request, *T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		v := new(T)
		if err := read(r, v); err != nil {
			return nil, err
		}
		return f(r, v)
	}
}

// read reads the JSON of a request. It refuses unknown fields, because the switch would ignore
// them.
func read(r *http.Request, v any) error {
	if err := decode(io.LimitReader(r.Body, maxRequest), v); err != nil {
		return fmt.Errorf("%s %s: body: %w", r.Method, r.URL.Path, err)
	}
	return nil
}

// decode reads JSON that has only fields of v.
func decode(from io.Reader, v any) error {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v)
}
