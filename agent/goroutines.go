package agent

import (
	"context"
	"errors"
)

// group is parts of the agent that run together and are ended together.
type group struct {
	cancel context.CancelFunc
	ended  chan error // of each part, how
	left   int        // parts whose end nobody has taken
}

// beginParts runs parts until ctx ends or the group is stopped.
func beginParts(ctx context.Context, parts ...func(context.Context) error) *group {
	ctx, cancel := context.WithCancel(ctx)
	g := &group{cancel, make(chan error, len(parts)), len(parts)}
	for _, run := range parts {
		go func() { g.ended <- run(ctx) }()
	}
	return g
}

// stop ends the parts, waits for them, and returns what went wrong in any.
func (g *group) stop() error {
	g.cancel()
	var errs []error
	for ; g.left > 0; g.left-- {
		errs = append(errs, <-g.ended)
	}
	return errors.Join(errs...)
}

// quietly is a part that has no error.
func quietly(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// lasting is a part that may have nothing to do any more before ctx ends.
func lasting(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); <-ctx.Done(); return nil }
}
