package sched

import (
	"sync"
	"time"
)

// Pods in a conversation (a request, then its response) wait for each other most of the time. So
// does the worker between them. If their processors fall asleep meanwhile, most of a round trip
// is the time to wake them. So a worker that sees a conversation has the kernel keep idle
// processors awake, until no packets come for a while.
//
// A worker with packets does the same while Go's garbage collector may be running. The collector
// stops the worker several times, and each time another processor has to wake before it continues
// (docs/decisions/011-workers-turns-and-sleep.md).

const (
	// chatter is how many more hops of a conversation than other hops a worker sees before it
	// keeps processors awake. After as many other hops, they may sleep.
	chatter = 64
	// silence is how long no packet comes before they may sleep.
	silence = 2 * time.Millisecond
)

// Awakener keeps idle processors awake (ports.Awake).
type Awakener interface {
	Keep(awake bool) error
	Close() error
}

// IdleHold is one worker's part in keeping processors awake. The fields not under mu belong to
// its goroutine.
type IdleHold struct {
	Awakener Awakener      // of conversations, minus others: 0 to chatter
	hops     int           // of conversations, less others: 0 to chatter
	talks    bool          // hops reached chatter, and have not returned to 0 since
	silent   time.Duration // slept since the last packet
	collects bool          // a collection may be running while packets come
	until    time.Duration // clock when this collection, or the last one, is over

	mu    sync.Mutex    // for the following fields, which the worker writes and others read
	since time.Duration // clock when processors began to be kept awake; 0: they may sleep
	kept  time.Duration // how long they were kept awake, until since
}

// Hop records packets that ended a wait. few says that they were few, as in a conversation.
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

// Collection records the time, when a collection is over, and whether packets came. After
// silence, the worker ignores the rest of a collection.
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

// Slept records how long no packet came.
func (a *IdleHold) Slept(d time.Duration) {
	if a.silent += d; a.silent >= silence {
		a.Release()
	}
}

// Release lets processors sleep until the next hop or collection.
func (a *IdleHold) Release() {
	a.hops, a.talks, a.collects = 0, false, false
	a.keep()
}

// LongestSleep is how long the worker may sleep until it must call Slept.
func (a *IdleHold) LongestSleep(d time.Duration) time.Duration {
	if a.since != 0 {
		return min(d, silence)
	}
	return d
}

// keep asks the kernel for the wanted state. If the kernel refuses, processors may sleep.
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
