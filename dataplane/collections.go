package dataplane

import (
	"reflect"
	"sync"
	"time"
)

// collectionTime is how long a collection marks at most, that a worker can do something
// about: 10 to 30 ms with 1,000,000 connections or 10,000 rules.
const collectionTime = 200 * time.Millisecond

// collections tells a worker that Go's garbage collector may be at work. Go has no call
// for it, but empties every sync.Pool when a collection begins. It is for one goroutine.
type collections struct {
	pool  sync.Pool
	local reflect.Value // the pool's own list of what was put, nil when there is none
	until time.Duration // when the last one is over
}

func newCollections() *collections {
	c := new(collections)
	c.local = reflect.ValueOf(&c.pool).Elem().FieldByName("local")
	return c
}

// mayBe says whether one may be at work. Of a Go whose pools look otherwise, it always
// may.
func (c *collections) mayBe(now time.Duration) bool {
	if c.local.Kind() != reflect.UnsafePointer {
		return true
	}
	for c.local.IsNil() { // again, for the race detector has pools forget what is put
		c.pool.Put(c)
		c.until = now + collectionTime
	}
	return now < c.until
}
