package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/antrail/antrail/door"
)

// A switch in a process of its own may be away. Methods of door.Client that have no error
// give zero values then, and count a failure. Two rules keep these zeros from becoming
// answers:
//
//  1. An answer of the API during which a request to the switch failed is replaced by an
//     error. Otherwise a dump of a dead switch would be a dump of an empty one.
//  2. A background loop keeps nothing of a round in which a request failed. Otherwise a
//     flow snapshot could lose all entries.
//
// Failures are counted for the whole client. A failure of one request therefore also
// fails those that run beside it, which ask the same switch.

// beginAsking begins a question to the switch. failed says why not all of its answers are
// to be believed; nil if they are.
func (p *pipeline) beginAsking() (failed func() error) {
	if p.remote == nil {
		return func() error { return nil }
	}
	before := p.remote.Failures()
	return func() error {
		if p.remote.Failures() == before {
			return nil
		}
		return withAdvice(p.remote.Err())
	}
}

// withAdvice adds to the error of a switch that is away what to do about it.
func withAdvice(err error) error {
	if away := (*door.AwayError)(nil); errors.As(err, &away) {
		return fmt.Errorf("%w; its log says why, and antrail switch --socket %s starts it again", err, away.Socket)
	}
	return err
}

// honest holds an answer back until it is whole. If the switch failed meanwhile, the
// answer is status 502 and the reason.
func (p *pipeline) honest(next http.HandlerFunc) http.HandlerFunc {
	if p.remote == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		failed := p.beginAsking()
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

// refuse answers with the error of a question: status 502 if the switch failed, and 400
// otherwise.
func refuse(w http.ResponseWriter, failed func() error, err error) {
	if f := failed(); f != nil {
		http.Error(w, f.Error(), http.StatusBadGateway)
		return
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}
