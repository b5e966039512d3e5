package bench

import (
	"context"
	"errors"
	"time"
)

// turnPart is how long a part of a window of turns is: at least one collection
// beside 10,000 rules of policies begins and ends in it.
const turnPart = 50 * time.Millisecond

// straddles is how long before a part a processor may have been taken so that it
// counts as taken in it: a turn that was kept by that may end in the part.
const straddles = 10 * time.Millisecond

// mostThrown is how many windows of parts are thrown away for one, at most.
const mostThrown = 2

// seen is what passed in some parts of a window.
type seen struct {
	longest time.Duration // turn
	long    uint64        // turns longer than longTurn
	packets uint64
	took    time.Duration
	parts   int
}

func (s *seen) add(more seen) {
	s.longest = max(s.longest, more.longest)
	s.long += more.long
	s.packets += more.packets
	s.took += more.took
	s.parts += more.parts
}

// ofPacket is the time of one, ns.
func (s *seen) ofPacket() float64 { return float64(s.took) / float64(s.packets) }

// watched is what passed in windows: in the parts that count, and in those that were
// thrown away.
type watched struct {
	seen
	thrown seen
	needed int    // parts that count although disturbed, since there were too few others
	all    uint64 // packets, of parts thrown away too
}

// disturbances are of all windows of a round how many parts were disturbed, and how long a
// turn of those thrown away was.
func disturbances(all ...watched) []reading {
	var thrown seen
	needed := 0
	for _, w := range all {
		thrown.add(w.thrown)
		needed += w.needed
	}
	return []reading{
		{"longest turn in parts thrown away", "µs", micros(1, thrown.longest)},
		{"parts thrown away", windowsUnit, float64(thrown.parts)},
		{"disturbed parts that were needed", windowsUnit, float64(needed)},
	}
}

// watch looks on until there is a window of parts in which nobody else took a processor,
// or mostThrown of others: when there is not half a window then, those count, too.
func (t *turns) watch(ctx context.Context, window time.Duration) (w watched, err error) {
	t.source.longest.Store(0) // of what was before
	for last := t.source.now(); w.took < window && w.thrown.took < mostThrown*window && err == nil; {
		var now count
		if now, err = t.part(ctx, last.at, min(turnPart, window)); err != nil {
			break
		}
		one := seen{now.longest, now.long - last.long, now.packets - last.packets, now.at.Sub(last.at), 1}
		if w.all += one.packets; now.disturbed {
			w.thrown.add(one)
		} else {
			w.add(one)
		}
		last = now
	}
	if w.took < window/2 {
		w.needed = w.thrown.parts
		w.add(w.thrown)
		w.thrown = seen{}
	}
	return w, err
}

// count is how far the source is, and what there was since it was last asked.
type count struct {
	at        time.Time
	packets   uint64
	long      uint64        // turns longer than longTurn
	longest   time.Duration // turn; 0 when none ended
	disturbed bool
}

// part looks on for so long, and on a busy machine until a turn ends. It says whether
// somebody else took a processor since began, or just before.
func (t *turns) part(ctx context.Context, began time.Time, long time.Duration) (now count, err error) {
	for now.longest == 0 && err == nil {
		wait(ctx, long)
		now = t.source.now()
		if err = ctx.Err(); err == nil && now.at.Sub(began) > beginPatience {
			err = errors.New("the worker made no turn")
		}
	}
	if err != nil || t.others == nil {
		return now, err
	}
	ago, err := t.others.last()
	now.disturbed = ago < now.at.Sub(began)+straddles
	return now, err
}
