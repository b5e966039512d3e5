package pipeline

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/door"
)

// The switch's process may not answer. Methods of door.Client without an error result then
// return zero values, and count a failure. Two rules keep these zeros from becoming answers:
//
//   1. If a request to the switch fails during a request to the API, the API answers with an
//      error. Otherwise a dump of a dead switch would look like a dump of an empty one.
//   2. If a request fails in a round of a background loop, the loop discards that round.
//      Otherwise the next agent could find less than there was.
//
// Failures are counted for the whole client. So a failed request also fails those that run at
// the same time, which ask the same switch.

// BeginAsking begins a series of requests to the switch. failed returns why not all of their
// answers are valid; nil if they are.
func (p *Pipeline) BeginAsking() (failed func() error) {
	if p.Remote == nil {
		return func() error { return nil }
	}
	before := p.Remote.Failures()
	return func() error {
		if p.Remote.Failures() == before {
			return nil
		}
		return WithAdvice(p.Remote.Err())
	}
}

// WithAdvice adds to the error of a switch that does not answer what to do.
func WithAdvice(err error) error {
	if away := (*door.AwayError)(nil); errors.As(err, &away) {
		return fmt.Errorf("%w; its log says why; antrail switch --socket %s starts it again", err, away.Socket)
	}
	return err
}
