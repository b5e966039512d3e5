package agent

import (
	"context"
	"errors"
)

// group is a set of goroutines that start and end together.
type group struct {
	cancel context.CancelFunc
	ended  chan error // receives the result of each part
	left   int        // parts whose result was not received yet
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

// stop ends the parts, waits for them, and returns their errors.
func (g *group) stop() error {
	g.cancel()
	var errs []error
	for ; g.left > 0; g.left-- {
		errs = append(errs, <-g.ended)
	}
	return errors.Join(errs...)
}

// quietly makes a part of a function that has no error.
func quietly(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// lasting makes a part of a function that may return before ctx ends.
func lasting(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); <-ctx.Done(); return nil }
}
