// Package bench measures this datapath against others, side by side.
//
// A figure of one run on a shared machine says little: another program on the
// other core changes it by half. So the two sides of a comparison run in turn,
// A B A B, and what is reported beside minimum, median and maximum is the
// ratio of each pair of neighbours.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Options bounds a comparison; what is zero has a default.
type Options struct {
	// Rounds is how many times each side runs; 5.
	Rounds int
	// Frames ends a run when so many were forwarded; 2,000,000.
	Frames int
	// Limit ends a run that takes longer; 5 seconds.
	Limit time.Duration
	// Size is the length of the frames in bytes, 60 to 1514; 64.
	Size int
}

// Check says what is wrong with the options.
func (o Options) Check() error { return o.complete() }

// complete fills in what is left at 0, and checks the rest.
func (o *Options) complete() error {
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Frames == 0 {
		o.Frames = 2_000_000
	}
	if o.Limit == 0 {
		o.Limit = 5 * time.Second
	}
	if o.Size == 0 {
		o.Size = 64
	}
	if o.Rounds < 0 || o.Frames < 0 || o.Limit < 0 || o.Size < 60 || o.Size > 1514 {
		return fmt.Errorf("bench: %+v: rounds, frames and limit are positive, the size is 60 to 1514", *o)
	}
	return nil
}

// What both sides of CompareAFXDP use alike: the slots of each ring, and the
// frames moved at a time, which is what one sendto of an AF_XDP socket sends
// unless the kernel is told otherwise, and the library does not tell it.
const (
	ringSlots = 2048
	batchSize = 32
)

// forwarder moves frames one way between the interfaces "in" and "out".
type forwarder interface {
	// forward moves up to a batch and returns how many frames were accepted
	// for transmission.
	forward() (int, error)
	close() error
}

// contender is one side of a comparison.
type contender struct {
	name string
	open func(*topology) (forwarder, error)
}

// CompareAFXDP forwards frames between two veths with ports/afxdp and with the
// library github.com/slavc/xdp in turn, and writes the table to w. Both run
// native, in copy mode, on one spinning thread; the kernel makes the frames on
// another. What is counted are frames that arrived behind the second veth.
//
// It needs root. All happens in a network namespace without a name, which
// goes away with the thread that it runs on, whatever happens.
func CompareAFXDP(ctx context.Context, o Options, w io.Writer) error {
	if err := o.complete(); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends, and the namespace with it
		failed <- compare(ctx, o, w)
	}()
	return <-failed
}

func compare(ctx context.Context, o Options, w io.Writer) error {
	ns, err := netns.New()
	if err != nil {
		return fmt.Errorf("bench: make a network namespace: %w", err)
	}
	defer ns.Close()
	sides := [2]contender{{"antrail", openPorts}, {"slavc/xdp", openLibrary}}
	fmt.Fprintf(w, "AF_XDP forwarding between two veths: %d-byte frames, native, copy, rings of %d, batches of %d\n",
		o.Size, ringSlots, batchSize)
	fmt.Fprintf(w, "%s, %d CPUs, %s\n\n", kernelRelease(), runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(w, "%-8s %12s %12s %8s\n", "round", sides[0].name, sides[1].name, "ratio")
	var rates [2]series
	for round := range o.Rounds {
		for i, side := range sides {
			rate, err := measure(ctx, ns, side, o)
			if err != nil {
				return fmt.Errorf("bench: round %d: %s: %w", round+1, side.name, err)
			}
			rates[i] = append(rates[i], rate)
		}
		a, b := rates[0][round], rates[1][round]
		fmt.Fprintf(w, "%-8d %7.3f Mpps %7.3f Mpps %8.2f\n", round+1, a/1e6, b/1e6, a/b)
	}
	report(w, rates[0], rates[1])
	return nil
}

// measure is one run of one side on links of its own: frames per second that
// arrived, from when the first ones did.
func measure(ctx context.Context, ns netns.NsHandle, side contender, o Options) (rate float64, err error) {
	net, err := newTopology(ns)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, net.close()) }()
	f, err := side.open(net)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	stop, err := net.generate(o.Size)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return run(ctx, net, f, o)
}

// warmup is how many frames pass before the clock starts.
const warmup = 1000

func run(ctx context.Context, net *topology, f forwarder, o Options) (float64, error) {
	end := time.Now().Add(o.Limit)
	if _, err := forwardUntil(ctx, f, warmup, end); err != nil {
		return 0, err
	}
	before, err := net.arrived()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := forwardUntil(ctx, f, o.Frames, end); err != nil {
		return 0, err
	}
	elapsed := time.Since(start)
	after, err := net.arrived()
	if err != nil {
		return 0, err
	}
	if after == before {
		return 0, fmt.Errorf("no frame arrived in %v", elapsed.Round(time.Millisecond))
	}
	return float64(after-before) / elapsed.Seconds(), nil
}

// forwardUntil forwards so many frames, or until the time is up.
func forwardUntil(ctx context.Context, f forwarder, frames int, end time.Time) (int, error) {
	total := 0
	for turn := 0; total < frames; turn++ {
		n, err := f.forward()
		if err != nil {
			return total, err
		}
		total += n
		if turn%256 == 0 && (ctx.Err() != nil || time.Now().After(end)) {
			return total, ctx.Err()
		}
	}
	return total, nil
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(name.Release[:])
}
