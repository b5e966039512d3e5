package dataplane

import (
	"context"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/ports"
)

// A worker without packets spins for a while, for the next one may be under
// way, and to be woken out of epoll_wait(2) costs the packet that comes first
// tens of microseconds. How long it spins follows what it saw: a sleep that
// ended soon says that longer spinning would have met the packet, a long one
// that spinning was wasted. So an idle switch does not spin at all, and one
// that answers requests does not sleep between them.
//
// After few packets a worker that spins asks nothing but its ports for a while.
// Then, and after many at once, it looks for others, and lets others run before
// each look, for they may be whom the next packet comes from: two pods and two
// workers on two processors are else in each other's way. When that took long
// somebody has a use for the processor, and the worker sleeps at once for a while,
// since who is woken is preferred.

const (
	// maxSpin is the longest that a worker spins: about what a wake-up costs.
	maxSpin = 50 * time.Microsecond
	// chainSpin is the longest after fewPackets or less, of fewBytes or less together:
	// these are of a conversation, whose next packet may come when several others have
	// been woken. After more it is better to sleep, and to have more still at once.
	chainSpin  = 120 * time.Microsecond
	fewPackets = 4
	fewBytes   = 4 * 1514
	// longYield is how long it takes to let others run when they have a use for the
	// processor. The worker then does not spin for leastDeference, and each time
	// for twice as long, up to mostDeference, when it had let them run fewer than
	// manyYields times since.
	longYield      = 500 * time.Microsecond
	leastDeference = 10 * time.Millisecond
	mostDeference  = time.Second
	manyYields     = 100
	// lookPause is how long a worker that spins for an answer asks only the ports
	// that are awake. A look and letting others run take longer than a packet, and a
	// frame that comes meanwhile loses more than that: the processor of whoever waits
	// for it falls asleep, which takes 8 to 16 µs to wake in a virtual machine.
	lookPause = 40 * time.Microsecond
	// minSpin is the shortest but none.
	minSpin = 4 * time.Microsecond
	// lookRounds and lookPackets are how many rounds, or packets, a worker
	// moves without looking for ports that the poller watches.
	lookRounds  = 8
	lookPackets = 32
	// sleep bounds one sleep; blindSleep does when a port has no descriptor.
	sleep      = time.Second
	blindSleep = time.Millisecond
	// vainWakes is how many times in a row a worker may be woken for nothing. A
	// port that is readable and gives no frame (its pool is empty, its link is
	// broken) is then asked every millisecond.
	vainWakes = 16
	// goTurn is how long a worker goes on without a turn of Go's scheduler. That gets
	// restless after 10 ms: it stops the goroutine by a signal, and when it finds the
	// thread in a system call, it looks every 20 µs for the next 5 ms or more, on a
	// thread that pods have to wait for. But a turn wakes a thread of Go's, too, which
	// looks for work on a processor that pods wait for.
	goTurn = 8 * time.Millisecond
	// collectionTurn is goTurn when a garbage collection may be at work. In a turn that
	// catches up on what it may have of the worker's processor: with up to three
	// sevenths of the time since it began or last did.
	collectionTurn = 250 * time.Microsecond
)

// patience is how long a worker spins.
type patience struct {
	span      time.Duration
	began     time.Duration // when this spin began
	deference time.Duration // the last one
	until     time.Duration // and when it ends
	yields    int           // since then
	looked    time.Duration // when it last let others run, and looked
	brought   int           // packets of the last rounds that were not empty
	bytes     int           // of them
	vain      int           // sleeps in a row that a port ended without a packet
}

// talks says that the last packets were few and small, as of a conversation.
func (p *patience) talks() bool { return p.brought <= fewPackets && p.bytes <= fewBytes }

// most is the longest that it may spin now.
func (p *patience) most() time.Duration {
	if p.talks() {
		return chainSpin
	}
	return maxSpin
}

// spins says whether it goes on spinning.
func (p *patience) spins(now time.Duration) bool {
	return now-p.began < min(p.span, p.most()) && now >= p.until
}

// awaits says that an answer may be under way, and that the worker looked for others
// a moment ago, or has just begun to spin.
func (p *patience) awaits(now time.Duration) bool {
	return p.talks() && p.spins(now) && now-max(p.looked, p.began) < lookPause
}

// yielded learns from having let others run.
func (p *patience) yielded(before, after time.Duration) {
	p.looked = after
	if p.yields++; after-before < longYield {
		return
	}
	if p.yields > manyYields {
		p.deference = 0
	}
	p.deference = min(mostDeference, max(leastDeference, 2*p.deference))
	p.until, p.yields = after+p.deference, 0
}

// bring learns of packets; first says that the round before brought none.
func (p *patience) bring(n, bytes int, first bool) {
	if first {
		p.brought, p.bytes = 0, 0
	}
	p.brought += n
	p.bytes += bytes
	p.vain = 0
}

// slept learns from a sleep. One that follows another without a packet in
// between says nothing new.
func (p *patience) slept(d time.Duration) {
	switch {
	case p.vain > 1:
		p.span = 0
	case d < p.most():
		p.span = min(p.most(), max(minSpin, 2*p.span))
	case p.span > minSpin:
		p.span /= 2
	default:
		p.span = 0
	}
}

// started is where clock counts from.
var started = time.Now()

// clock is for spinning and sleeping, which take real time whatever clock the
// switch was made with.
func clock() time.Duration { return time.Since(started) }

// runWorker is the worker's goroutine: rounds over its ports, and sleep when
// nothing comes. It is not locked to a thread: a locked goroutine gets its
// processor back from Go's scheduler by way of another thread, which takes 25 to
// 120 µs (docs/decisions/050-workers-and-the-scheduler-of-go.md).
func (w *worker) runWorker(ctx context.Context) error {
	idle, rounds, packets := 0, 0, 0 // rounds and packets since the last look
	turn, gc := clock(), newCollections()
	defer w.wakefulness.rest()
	for ctx.Err() == nil {
		n := w.round()
		rounds, packets = rounds+1, packets+n
		if w.crowded {
			w.crowded = false
			w.sw.relieve()
		}
		if n > 0 {
			if idle > 0 {
				w.wakefulness.hop(w.patience.talks())
			}
			w.patience.bring(n, w.bytes, idle > 0)
			idle = 0
		} else if idle++; idle == 1 {
			w.patience.began = clock()
		}
		if rounds < lookRounds && packets < lookPackets {
			continue
		}
		now := clock()
		collects := gc.mayBe(now)
		w.wakefulness.collection(now, gc.until, packets > 0)
		rounds, packets = 0, 0
		if since := now - turn; since > goTurn || since > collectionTurn && collects {
			runtime.Gosched()
			turn = now
		}
		if w.awaits = idle >= lookRounds && w.patience.awaits(now); w.awaits {
			continue
		}
		if err := w.lookOrRest(idle >= lookRounds); err != nil {
			return err
		}
	}
	return nil
}

// lookOrRest asks the poller; a worker that is idle may sleep.
func (w *worker) lookOrRest(idle bool) error {
	if idle {
		return w.rest()
	}
	return w.look(0)
}

// look asks the poller which ports have frames; with a timeout, it sleeps until
// one has.
func (w *worker) look(timeout time.Duration) (err error) {
	w.woken, err = w.poller.Wait(w.woken, timeout)
	return err
}

// rest looks once more, or sleeps when the worker has spun long enough.
func (w *worker) rest() error {
	w.settle()
	now := clock()
	if w.patience.spins(now) {
		ports.LetOthersRun()
		w.patience.yielded(now, clock())
		return w.look(0)
	}
	timeout := sleep
	if w.receive.Load().blind > 0 {
		timeout = blindSleep
	}
	if w.patience.vain++; w.patience.vain > vainWakes {
		time.Sleep(blindSleep)
		timeout = 0
	}
	w.counts.spinning.Add(uint64(now - w.patience.began))
	return w.sleep(now, timeout)
}

// sleep waits in epoll_wait(2) and learns from it.
func (w *worker) sleep(now, timeout time.Duration) error {
	w.counts.sleeps.Add(1)
	w.counts.wakes.sleeps(true)
	err := w.look(w.wakefulness.longestSleep(timeout))
	w.counts.wakes.sleeps(false)
	after := clock()
	w.wakefulness.slept(after - now)
	w.counts.sleeping.Add(uint64(after - now))
	w.patience.slept(after - now)
	w.patience.began = after
	if len(w.woken) == 0 {
		w.patience.vain = 0
	}
	return err
}

// WakeBuckets is how many buckets a histogram of wake-ups has.
const WakeBuckets = 16

// wakes measures how long a sleeping worker takes to run again once it is
// called, by calling it every second.
type wakes struct {
	asleep atomic.Bool
	called atomic.Int64 // clock of the call; 0 when there was none
	counts [WakeBuckets]atomic.Uint64
}

// call wakes the worker if it sleeps, so that the time it takes is known.
func (w *worker) call() {
	if w.counts.wakes.asleep.Load() {
		w.counts.wakes.called.Store(int64(clock()))
		w.poller.Wake()
	}
}

// sleeps is told by the worker before it sleeps and after.
func (w *wakes) sleeps(yes bool) {
	if yes {
		w.called.Store(0) // a call that came too late for the last sleep
		w.asleep.Store(true)
		return
	}
	w.asleep.Store(false)
	if called := w.called.Swap(0); called != 0 {
		w.counts[wakeBucket(clock()-time.Duration(called))].Add(1)
	}
}

// wakeBucket is the bucket of a wake-up: bucket i is for those below 2^i
// microseconds that the one before is not for; the last one is for all longer
// ones.
func wakeBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(0, d.Microseconds()))), WakeBuckets-1)
}
