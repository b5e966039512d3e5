//go:build !linux

package ports

import (
	"errors"
	"runtime"
	"time"
)

// Poller is what puts a worker to sleep where there is no epoll(7). The ports of
// such a machine are in memory, without descriptors: only Wake ends a Wait early.
type Poller struct{ wake chan struct{} }

// ErrNoDescriptor is Watch's answer for a port that nobody announces frames of.
var ErrNoDescriptor = errors.New("the port has no descriptor to wait for")

// NewPoller makes a poller.
func NewPoller() (*Poller, error) { return &Poller{make(chan struct{}, 1)}, nil }

// Watch is ErrNoDescriptor, whatever the port.
func (p *Poller) Watch(uint32, Port) error { return ErrNoDescriptor }

// Unwatch has nothing to end.
func (p *Poller) Unwatch(Port) {}

// Wait sleeps until Wake is called or the time is up, and appends nothing.
func (p *Poller) Wait(ready []uint32, timeout time.Duration) ([]uint32, error) {
	select {
	case <-p.wake:
	case <-time.After(timeout):
	}
	return ready, nil
}

// LetOthersRun gives the processor to another goroutine that waits for it.
func LetOthersRun() { runtime.Gosched() }

// Wake ends a Wait that is under way, or the next one.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close has nothing to give back.
func (p *Poller) Close() error { return nil }
