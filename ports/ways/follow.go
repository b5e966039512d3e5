package ways

import (
	"errors"
	"sync"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// lookAgain is how often the kernel is asked if it reports nothing.
	lookAgain = 5 * time.Second
	// lookPause is the shortest time between two looks.
	lookPause = 50 * time.Millisecond
)

// Follower calls a function that looks at the kernel's links, routes and neighbours. It does so
// when the kernel reports a change. It also does so periodically, because the kernel does not
// report MTUs from routers.
type Follower struct {
	told  *nl.NetlinkSocket
	ended chan struct{}
	done  sync.WaitGroup
	once  sync.Once
}

// Follow starts to follow the kernel, in the calling thread's network namespace. groups are
// multicast groups of rtnetlink(7). The caller takes the first look itself. regular says that the
// look is periodic, without a report.
func Follow(look func(regular bool), groups ...uint) (*Follower, error) {
	told, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, err
	}
	f := &Follower{told: told, ended: make(chan struct{})}
	notices := make(chan struct{}, 1)
	f.done.Go(func() { f.runNotices(notices) })
	f.done.Go(func() { f.runLooks(notices, look) })
	return f, nil
}

// FollowAddresses is Follow for the Node's addresses.
func FollowAddresses(look func(regular bool)) (*Follower, error) {
	return Follow(look, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
}

// runNotices passes the kernel's reports on, merging several into one, until the end.
func (f *Follower) runNotices(notices chan<- struct{}) {
	for {
		if _, _, err := f.told.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
		select {
		case <-f.ended:
			return
		case notices <- struct{}{}:
		default:
		}
	}
}

// runLooks takes looks until the end.
func (f *Follower) runLooks(notices <-chan struct{}, look func(regular bool)) {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-f.ended:
			return
		case <-notices:
			look(false)
		case <-again.C:
			look(true)
		}
		select {
		case <-f.ended:
			return
		case <-time.After(lookPause):
		}
	}
}

// Close ends following, and waits until it has ended. Close of a nil Follower does nothing.
func (f *Follower) Close() {
	if f == nil {
		return
	}
	f.once.Do(func() {
		close(f.ended)
		f.told.Close()
		f.done.Wait()
	})
}
