package forward

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/antrail/antrail/bench/testbed"
)

// Forwarders do nothing but forward: they show what a driver costs without a pipeline.

const (
	// ringSlots is how many slots each ring of an AF_XDP socket has.
	ringSlots = 2048
	// batchSize is how many frames a forwarder moves at a time. By default one sendto of an AF_XDP
	// socket sends as many, and the library leaves the default.
	batchSize = 32
)

// forwarder moves frames one way, from testbed.InLink to testbed.OutLink.
type forwarder interface {
	// forwardBatch moves up to a batch. It returns how many frames were accepted for transmission.
	forwardBatch() (int, error)
	close() error
}

// spinForwarder returns a function that opens a forwarder and calls it without pause, on a thread of its
// own.
func spinForwarder(open func(*testbed.Topology) (forwarder, error)) func(context.Context, *testbed.Topology) (*running, error) {
	return func(_ context.Context, t *testbed.Topology) (*running, error) {
		f, err := open(t)
		if err != nil {
			return nil, err
		}
		var done atomic.Bool
		ended := make(chan error, 1)
		go func() { ended <- runForwarder(f, &done) }()
		return &running{process: "self", stop: func() error {
			done.Store(true)
			return errors.Join(<-ended, f.close())
		}}, nil
	}
}

// runForwarder calls a forwarder until done.
func runForwarder(f forwarder, done *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !done.Load() {
		if _, err := f.forwardBatch(); err != nil {
			return err
		}
	}
	return nil
}
