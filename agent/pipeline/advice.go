package pipeline

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/door"
)

// A switch in a process of its own may be away. Methods of door.Client that have no error
// give zero values then, and count a failure. Two rules keep these zeros from becoming
// answers:
//
//  1. An answer of the API during which a request to the switch failed is replaced by an
//     error. Otherwise a dump of a dead switch would be a dump of an empty one.
//  2. A background loop keeps nothing of a round in which a request failed. Otherwise the
//     next agent could find less than there was.
//
// Failures are counted for the whole client. A failure of one request therefore also
// fails those that run beside it, which ask the same switch.

// BeginAsking begins a question to the switch. failed says why not all of its answers are
// to be believed; nil if they are.
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

// WithAdvice adds to the error of a switch that is away what to do about it.
func WithAdvice(err error) error {
	if away := (*door.AwayError)(nil); errors.As(err, &away) {
		return fmt.Errorf("%w; its log says why, and antrail switch --socket %s starts it again", err, away.Socket)
	}
	return err
}
