package sched

import (
	"reflect"
	"sync"
	"time"
)

// collectionTime is the longest marking of a collection that a worker can do something
// about. With 1,000,000 connections or 10,000 rules it takes 10 to 30 ms.
const collectionTime = 200 * time.Millisecond

// Collections tells a worker that Go's garbage collector may be at work. Go has no call
// for it, but empties every sync.Pool when a collection begins. It is for one goroutine.
type Collections struct {
	pool  sync.Pool
	local reflect.Value // the pool's own list of what was put, nil when there is none
	Until time.Duration // when the last one is over
}

func NewCollections() *Collections {
	c := new(Collections)
	c.local = reflect.ValueOf(&c.pool).Elem().FieldByName("local")
	return c
}

// MayBe says whether one may be at work. Of a Go whose pools look otherwise, it always
// may.
func (c *Collections) MayBe(now time.Duration) bool {
	if c.local.Kind() != reflect.UnsafePointer {
		return true
	}
	for c.local.IsNil() { // again, for the race detector has pools forget what is put
		c.pool.Put(c)
		c.Until = now + collectionTime
	}
	return now < c.Until
}
