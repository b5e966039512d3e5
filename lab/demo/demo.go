// Package demo checks a lab: real sockets in the pods' namespaces connect, refuse, ping
// and forge, and each check reports what it saw.
//
//	demo.go     the run: lab up, checks, lab down
//	checks.go   the list of checks
//	world.go    the lab with servers in its pods
//	tcp.go, ping.go, datagram.go, service.go, policy.go, spoof.go, neighbours.go, tunnel.go   the checks
//	captured.go a reader of captured frames
//	outside.go, taps.go   the checks of what only examples/web-app has
//	ipv6.go     the list of checks over IPv6
//	accounted.go the switches' packet counters, at the end
//
// Nothing is simulated, and no other program is called. A pod's socket is one that this
// process opened on a thread inside the pod's namespace.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/antrail/antrail/lab"
)

// Run makes a lab, checks it and removes it, also if a check fails or ctx ends. First it
// removes what a killed run left. It writes one line per check. If a check does not hold,
// or something is left, that is an error.
func Run(ctx context.Context, o lab.Options, w io.Writer) error {
	o.Nodes, o.Progress, o.Transient = 2, w, true
	if o.StateDir == "" {
		o.StateDir = lab.StateDir()
	}
	if err := lab.Sweep(o.StateDir); err != nil {
		return err
	}
	l, err := lab.Up(ctx, o)
	if err != nil {
		return err
	}
	err = Check(ctx, l, w)
	return errors.Join(err, l.Down())
}

// Check runs all checks in a lab of two Nodes that is up, in order. The error counts those
// that do not hold.
func Check(ctx context.Context, l *lab.Lab, w io.Writer) error {
	world, err := newWorld(l)
	if err != nil {
		return err
	}
	defer world.close()
	checks, err := world.checks(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	failed := 0
	for _, c := range checks {
		held := report(w, c.name, func() (string, error) { return c.run(ctx, world) })
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped in the check %q: %w", c.name, err)
		}
		if !held {
			failed++
		}
	}
	fmt.Fprintf(w, "\n%d of %d checks hold\n\n", len(checks)-failed, len(checks))
	if failed > 0 {
		return fmt.Errorf("%d of %d checks do not hold", failed, len(checks))
	}
	return nil
}

// report runs one check and writes its line: verdict, name, time, observation.
func report(w io.Writer, name string, run func() (string, error)) bool {
	began := time.Now()
	seen, err := run()
	verdict := "PASS"
	if err != nil {
		verdict, seen = "FAIL", err.Error()
	}
	fmt.Fprintf(w, "%s  %-52s %7.3fs  %s\n", verdict, name, time.Since(began).Seconds(), seen)
	return err == nil
}
