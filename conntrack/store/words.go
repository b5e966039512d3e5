//go:build !amd64 || race

package store

import "sync/atomic"

// setWord stores a word of a cell that the caller has locked, or whose generation is even.
func setWord(at *atomic.Uint64, w uint64) { at.Store(w) }

// setFixed is setWord for the fixed words.
func (c *Cell) setFixed(f *FixedWords) {
	for dir := range c.keys {
		for i, w := range f.Key(dir) {
			setWord(&c.keys[dir][i], w)
		}
	}
	setWord(&c.fixed, f[len(f)-1])
}

// setHalf is setWord for half a word.
func setHalf(at *atomic.Uint32, w uint32) { at.Store(w) }
