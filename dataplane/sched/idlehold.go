package sched

import (
	"sync"
	"time"
)

// Pods that talk, a question and then an answer, wait for each other most of the time,
// and so does the worker between them. Where their processors fall asleep meanwhile, most
// of a round trip is waking those up. So a worker that sees a conversation has the kernel
// keep idle processors awake, until nothing comes for a while
// (docs/decisions/011-workers-turns-and-sleep.md). A worker that has packets while Go's
// garbage collector may be at work does the same. The collector stops the worker several
// times, and each time another processor has to wake before it continues
// (docs/decisions/011-workers-turns-and-sleep.md).

const (
	// chatter is how many more hops of a conversation than others a worker has seen when
	// it keeps processors awake. When there are as many others, they may sleep.
	chatter = 64
	// silence is how long nothing has come when they may.
	silence = 2 * time.Millisecond
)

// Awakener keeps idle processors awake (ports.Awake).
type Awakener interface {
	Keep(awake bool) error
	Close() error
}

// IdleHold is a worker's part in that. What is not under mu is its goroutine's.
type IdleHold struct {
	Awakener Awakener      // nil: processors sleep as they like
	hops     int           // of conversations, less others: 0 to chatter
	talks    bool          // chatter of a conversation, and not as many others since
	silent   time.Duration // slept since the last packet
	collects bool          // a collection may be at work beside packets
	until    time.Duration // clock when it, or the last one, is over

	mu    sync.Mutex    // of what follows, which the worker writes and others read
	since time.Duration // clock when processors were kept awake; 0: they may sleep
	kept  time.Duration // how long they were, until since
}

// Hop is told of packets that ended a wait; few says that they were few, as those of a
// conversation are.
func (a *IdleHold) Hop(few bool) {
	a.silent = 0
	switch {
	case few && a.hops < chatter:
		if a.hops++; a.hops == chatter {
			a.talks = true
			a.keep()
		}
	case !few && a.hops > 0:
		if a.hops--; a.hops == 0 {
			a.talks = false
			a.keep()
		}
	}
}

// Collection is told the time, until when a collection may be at work, and whether
// packets came. After silence the rest of a collection is nobody's matter.
func (a *IdleHold) Collection(now, until time.Duration, busy bool) {
	switch {
	case a.collects && now >= until:
		a.collects = false
	case busy && now < until && until != a.until:
		a.collects, a.until = true, until
	default:
		return
	}
	a.keep()
}

// Slept is told how long nothing came.
func (a *IdleHold) Slept(d time.Duration) {
	if a.silent += d; a.silent >= silence {
		a.Release()
	}
}

// Release lets processors sleep until something else happens.
func (a *IdleHold) Release() {
	a.hops, a.talks, a.collects = 0, false, false
	a.keep()
}

// LongestSleep is how long the worker may sleep before slept is told.
func (a *IdleHold) LongestSleep(d time.Duration) time.Duration {
	if a.since != 0 {
		return min(d, silence)
	}
	return d
}

// keep asks for what is wanted now. A kernel that refuses lets processors sleep.
func (a *IdleHold) keep() {
	awake := a.talks || a.collects
	if a.Awakener == nil || awake == (a.since != 0) || a.Awakener.Keep(awake) != nil {
		return
	}
	now := Clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if awake {
		a.since = now
	} else {
		a.kept, a.since = a.kept+now-a.since, 0
	}
}

// Total is how long processors were kept awake until now.
func (a *IdleHold) Total() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == 0 {
		return a.kept
	}
	return a.kept + Clock() - a.since
}

// Close lets processors sleep for good.
func (a *IdleHold) Close() error {
	if a.Awakener == nil {
		return nil
	}
	return a.Awakener.Close()
}
