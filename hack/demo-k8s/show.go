package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
)

// The steps of the demo, and when it waits for an interrupt. Each interrupt counts once. One that
// ends a wait does not end the step after it, and the next wait needs another.

// show is the demo's steps.
type show struct {
	up, check, uninstall func(context.Context) error
	failed               func() // prints what is known of a failure
	look                 func() // prints how to look at the kept cluster
	keep                 bool   // wait for an interrupt before the cluster is removed
	interrupts           *interrupts
}

// run does the steps. When it returns, the cluster may be taken down.
func (s *show) run() error {
	err := s.steps()
	if err != nil {
		s.failed()
		s.waitIfKept()
	}
	return err
}

func (s *show) steps() error {
	if err := s.up(s.interrupts.ctx); err != nil {
		return err
	}
	if err := s.check(s.interrupts.ctx); err != nil {
		return err
	}
	s.waitIfKept()
	fmt.Println("uninstalling antrail")
	return s.uninstall(s.interrupts.ctx)
}

// waitIfKept waits for an interrupt, if -keep was set and none came.
func (s *show) waitIfKept() {
	if s.keep && s.interrupts.ctx.Err() == nil {
		s.look()
		s.interrupts.wait()
	}
}

// interrupts are the interrupts of the demo, one after the other.
type interrupts struct {
	ctx  context.Context // ends with the next one
	stop context.CancelFunc
	next func() (context.Context, context.CancelFunc) // makes another such context
}

func newInterrupts(next func() (context.Context, context.CancelFunc)) *interrupts {
	i := &interrupts{next: next}
	i.ctx, i.stop = next()
	return i
}

// nextInterrupt is a context that ends with the next interrupt.
func nextInterrupt() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}

// wait waits for an interrupt, and makes the context of the next.
func (i *interrupts) wait() {
	<-i.ctx.Done()
	over := i.stop
	i.ctx, i.stop = i.next() // before the last one ends: no interrupt ends the process
	over()
}
