package program

import (
	"iter"
	"maps"
	"slices"
)

// numbered has the groups or the meters of a program by number. It is immutable: edited makes
// another one, which shares all unchanged shards. So changing one of ten thousand groups copies a
// sixty-fourth of them.
type numbered[T any] struct {
	shards [shards]map[uint32]*T
}

const shards = 64

// Get is the group or meter with a number, or nil.
func (n *numbered[T]) Get(id uint32) *T {
	if n == nil {
		return nil
	}
	return n.shards[id%shards][id]
}

// All iterates over them by number.
func (n *numbered[T]) All() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		if n == nil {
			return
		}
		var ids []uint32
		for _, m := range n.shards {
			ids = slices.AppendSeq(ids, maps.Keys(m))
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(id, n.Get(id)) {
				return
			}
		}
	}
}

// editing is a copy that is being changed.
type editing[T any] struct {
	made  *numbered[T]
	owned [shards]bool // shards that are already copied
}

// edited begins a copy.
func (n *numbered[T]) edited() *editing[T] {
	e := &editing[T]{made: new(numbered[T])}
	if n != nil {
		*e.made = *n
	}
	return e
}

// set sets the value of a number; nil deletes it.
func (e *editing[T]) set(id uint32, v *T) {
	m := &e.made.shards[id%shards]
	if !e.owned[id%shards] {
		e.owned[id%shards] = true
		if *m = maps.Clone(*m); *m == nil {
			*m = make(map[uint32]*T)
		}
	}
	if v == nil {
		delete(*m, id)
	} else {
		(*m)[id] = v
	}
}
