package sched

import (
	"reflect"
	"sync"
	"time"
)

// collectionTime is how long a collection may mark while a worker reacts to it. With 1,000,000
// connections or 10,000 rules, marking takes 10 to 30 ms.
const collectionTime = 200 * time.Millisecond

// Collections tells a worker whether Go's garbage collector may be running. Go has no call for
// that, but it empties every sync.Pool when a collection begins. It is for one goroutine.
type Collections struct {
	pool  sync.Pool
	local reflect.Value // the pool's internal list of its objects; nil if it is empty
	Until time.Duration // when the last collection is over
}

// NewCollections returns one for the calling goroutine.
func NewCollections() *Collections {
	c := new(Collections)
	c.local = reflect.ValueOf(&c.pool).Elem().FieldByName("local")
	return c
}

// MayBe says whether a collection may be running. If a Go version has other pools, it always
// returns true.
func (c *Collections) MayBe(now time.Duration) bool {
	if c.local.Kind() != reflect.UnsafePointer {
		return true
	}
	for c.local.IsNil() { // a loop, because the race detector makes pools drop objects
		c.pool.Put(c)
		c.Until = now + collectionTime
	}
	return now < c.Until
}
