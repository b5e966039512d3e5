//go:build linux

package ports

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Link says whether a link exists and is up. It asks the kernel in the network namespace where it
// was made, from any thread and at any time until Close.
type Link struct {
	fd    int // any socket of that namespace
	name  string
	index int
	gone  atomic.Bool
	down  atomic.Bool // the last result of Up
}

// WatchLink watches a link of the calling thread's network namespace.
func WatchLink(name string, index int) (*Link, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: socket for the link's state: %w", name, err)
	}
	return &Link{fd: fd, name: name, index: index}, nil
}

// Gone records that the link has vanished. A link never returns under the same index.
func (l *Link) Gone() { l.gone.Store(true) }

// Up asks the kernel whether the link is up and running. A renamed link counts as gone.
func (l *Link) Up() bool {
	up := l.queryState()
	l.down.Store(!up)
	return up
}

// Down says that the link is down, for transmitting: the kernel accepts and drops frames on a
// link without a carrier. It asks the kernel, which costs a microsecond, only if the last Up
// returned false. After Up returned true, it returns false.
func (l *Link) Down() bool { return l.down.Load() && !l.Up() }

func (l *Link) queryState() bool {
	request, err := unix.NewIfreq(l.name)
	if err != nil || l.gone.Load() {
		return false
	}
	if unix.IoctlIfreq(l.fd, unix.SIOCGIFINDEX, request) != nil || int(request.Uint32()) != l.index {
		return false
	}
	if unix.IoctlIfreq(l.fd, unix.SIOCGIFFLAGS, request) != nil {
		return false
	}
	const running = unix.IFF_UP | unix.IFF_RUNNING
	return request.Uint16()&running == running
}

// Close ends watching the link.
func (l *Link) Close() error { return unix.Close(l.fd) }
