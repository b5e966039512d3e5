//go:build !linux

package ports

import (
	"errors"
	"runtime"
	"time"
)

// Poller lets a worker sleep on systems without epoll(7). All ports there are in memory, without
// descriptors, so only Wake ends a Wait early.
type Poller struct{ wake chan struct{} }

// ErrNoDescriptor is Watch's error.
var ErrNoDescriptor = errors.New("the port has no descriptor to wait for")

// NewPoller makes a poller.
func NewPoller() (*Poller, error) { return &Poller{make(chan struct{}, 1)}, nil }

// Watch always returns ErrNoDescriptor.
func (p *Poller) Watch(uint32, Port) error { return ErrNoDescriptor }

// Unwatch does nothing.
func (p *Poller) Unwatch(Port) {}

// Wait sleeps until Wake is called or the time is up, and appends nothing.
func (p *Poller) Wait(ready []uint32, timeout time.Duration) ([]uint32, error) {
	select {
	case <-p.wake:
	case <-time.After(timeout):
	}
	return ready, nil
}

// LetOthersRun yields the processor to a waiting goroutine.
func LetOthersRun() { runtime.Gosched() }

// Wake ends a Wait that is under way, or the next one.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close does nothing.
func (p *Poller) Close() error { return nil }
