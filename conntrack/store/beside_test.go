package store

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// rounds is how often two goroutines meet.
const rounds = 5_000

// beside runs look and write in two goroutines. It ends when look has often run while
// between was true. With one processor, it ends after many writes.
func beside(look func(), write func(i int), between func() bool) {
	const often, long = 10 * rounds, 100 * rounds
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
	for i := 0; i < long && !stop.Load(); i++ {
		write(i)
		linger(rand.IntN(200))
	}
	stop.Store(true)
	wait.Wait()
}

// linger does nothing for a while.
func linger(n int) {
	for range n {
		lingered.Load()
	}
}

var lingered atomic.Uint32
