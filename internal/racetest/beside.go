// Package racetest makes two goroutines of a test overlap at a chosen moment.
package racetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Rounds is how often two goroutines overlap.
const Rounds = 5_000

// MostWrites is how often Beside calls write at most.
const MostWrites = 100 * Rounds

// Beside runs look and write in two goroutines. It ends when look has often run while
// between was true. With one processor, it ends after many writes.
func Beside(look func(), write func(i int), between func() bool) {
	const often = 10 * Rounds
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for met, was := 0, false; !stop.Load() && met < often; look() {
			now := between()
			if now && !was {
				met++
			}
			was = now
		}
		stop.Store(true)
	})
	for i := 0; i < MostWrites && !stop.Load(); i++ {
		write(i)
		Linger(rand.IntN(200))
	}
	stop.Store(true)
	wait.Wait()
}

// Linger does nothing for a while.
func Linger(n int) {
	for range n {
		lingered.Load()
	}
}

var lingered atomic.Uint32
