package dataplane

import (
	"context"
	"runtime"
	"time"

	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/ports"
)

// The rounds of a worker, its waits between packets, and its sleep. Package sched decides how
// long it spins before a sleep.

const (
	// lookRounds and lookPackets are how many rounds, or packets, a worker handles between two
	// calls of the poller.
	lookRounds  = 8
	lookPackets = 32
	// sleep limits one sleep; firstSleep limits it after packets, because a ring may have left some
	// of them to the next settle. blindSleep limits it if a port has no descriptor.
	sleep      = 5 * time.Second
	firstSleep = time.Second
	blindSleep = time.Millisecond
	// callEvery is the number of seconds between two calls of the workers. After a call, Go's
	// runtime wakes up about sixty times.
	callEvery = 5
	// vainWakes is how many times in a row a worker may wake for nothing. The cause is a port
	// that is readable and gives no frame (empty pool, broken link). After that, the worker asks
	// only every millisecond.
	vainWakes = 16
	// goTurn is how long a worker runs without yielding to Go's scheduler. After 10 ms that
	// scheduler stops the goroutine by a signal. If the thread is then in a system call, the
	// scheduler polls every 20 µs for the next 5 ms or more. Its polling thread delays pods. But
	// each yield also wakes a Go thread, which looks for work on a processor that pods need.
	goTurn = 8 * time.Millisecond
	// collectionTurn is goTurn while a garbage collection may run. When the worker yields, the
	// collector makes up for its share of the worker's processor. That is up to three sevenths of
	// the time since it began or last ran.
	collectionTurn = 250 * time.Microsecond
)

// runWorker is the worker's goroutine: rounds over its ports, and sleep if no frames come. It is
// not locked to a thread. Go's scheduler returns the processor to a locked goroutine through
// another thread, which takes 25 to 120 µs (docs/decisions/011-workers-turns-and-sleep.md).
func (w *worker) runWorker(ctx context.Context) error {
	idle, rounds, packets := 0, 0, 0 // rounds and packets since the last look
	turn, gc := sched.Clock(), sched.NewCollections()
	defer w.hold.Release()
	for ctx.Err() == nil {
		n := w.round()
		rounds, packets = rounds+1, packets+n
		if w.crowded {
			w.crowded = false
			w.sw.relieve()
		}
		if n > 0 {
			w.moved = true
			if idle > 0 {
				w.hold.Hop(w.polling.Talks())
			}
			w.polling.Received(n, w.bytes, idle > 0)
			idle = 0
		} else if idle++; idle == 1 {
			w.polling.Began = sched.Clock()
		}
		if rounds < lookRounds && packets < lookPackets {
			continue
		}
		now := sched.Clock()
		collects := gc.MayBe(now)
		w.hold.Collection(now, gc.Until, packets > 0)
		rounds, packets = 0, 0
		if since := now - turn; since > goTurn || since > collectionTurn && collects {
			runtime.Gosched()
			turn = now
		}
		if w.awaits = idle >= lookRounds && w.polling.Awaits(now); w.awaits {
			continue
		}
		if err := w.lookOrRest(idle >= lookRounds); err != nil {
			return err
		}
	}
	return nil
}

// lookOrRest asks the poller. An idle worker may sleep there.
func (w *worker) lookOrRest(idle bool) error {
	if idle {
		return w.rest()
	}
	return w.look(0)
}

// look asks the poller which ports have frames. With a timeout, it sleeps until one has.
func (w *worker) look(timeout time.Duration) (err error) {
	w.woken, err = w.poller.Wait(w.woken, timeout)
	return err
}

// rest looks once more, or sleeps if the worker has spun long enough.
func (w *worker) rest() error {
	w.settle()
	now := sched.Clock()
	if w.polling.Spins(now) {
		ports.LetOthersRun()
		w.polling.Yielded(now, sched.Clock())
		return w.look(0)
	}
	timeout := sleep
	if w.moved {
		w.moved, timeout = false, firstSleep
	}
	if w.receive.Load().blind > 0 {
		timeout = blindSleep
	}
	if w.polling.Vain++; w.polling.Vain > vainWakes {
		time.Sleep(blindSleep)
		timeout = 0
	}
	w.counts.spinning.Add(uint64(now - w.polling.Began))
	return w.sleep(now, timeout)
}

// sleep waits in epoll_wait(2) and records how long.
func (w *worker) sleep(now, timeout time.Duration) error {
	w.counts.sleeps.Add(1)
	w.counts.wakes.Sleeps(true)
	err := w.look(w.hold.LongestSleep(timeout))
	w.counts.wakes.Sleeps(false)
	after := sched.Clock()
	w.hold.Slept(after - now)
	w.counts.sleeping.Add(uint64(after - now))
	w.polling.Slept(after - now)
	w.polling.Began = after
	if len(w.woken) == 0 {
		w.polling.Vain = 0
	}
	return err
}

// call wakes a sleeping worker, to measure how long that takes.
func (w *worker) call() {
	if w.counts.wakes.Asleep.Load() {
		w.counts.wakes.Called.Store(int64(sched.Clock()))
		w.poller.Wake()
	}
}
