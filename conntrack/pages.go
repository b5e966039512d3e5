package conntrack

import (
	"iter"
	"sync/atomic"
)

// paged has a value for each number of 16 bits, by the upper and the lower half. A page is made
// when one of its values is first used, because a Node has few zones and ports. Any goroutine may
// use it.
type paged[T any] [256]atomic.Pointer[[256]T]

// at is the value of a number.
func (p *paged[T]) at(no uint16) *T { return p.over(no, nil, nil) }

// over is at. If parent is not nil, a new page begins with copies of the parent's values.
func (p *paged[T]) over(no uint16, parent *paged[T], copyTo func(to, from *T)) *T {
	at := &p[no>>8]
	for {
		if page := at.Load(); page != nil {
			return &page[no&0xff]
		}
		fresh := new([256]T)
		if parent != nil {
			if from := parent[no>>8].Load(); from != nil {
				for i := range fresh {
					copyTo(&fresh[i], &from[i])
				}
			}
		}
		at.CompareAndSwap(nil, fresh)
	}
}

// all are the numbers and values of all pages.
func (p *paged[T]) all() iter.Seq2[uint16, *T] {
	return func(yield func(uint16, *T) bool) {
		for high := range p {
			page := p[high].Load()
			if page == nil {
				continue
			}
			for low := range page {
				if !yield(uint16(high<<8|low), &page[low]) {
					return
				}
			}
		}
	}
}
