package sched

import (
	"testing"
	"time"
)

// TestPolling: how long a worker spins follows how long it slept, and how many
// packets came before.
func TestPolling(t *testing.T) {
	for name, c := range map[string]struct {
		packets int
		slept   time.Duration
		want    time.Duration
	}{
		"answers soon":                     {1, 20 * time.Microsecond, conversationSpin},
		"answers by way of others":         {2, 100 * time.Microsecond, conversationSpin},
		"answers late":                     {1, 200 * time.Microsecond, 0},
		"many packets soon":                {20, 20 * time.Microsecond, maxSpin},
		"many packets by way of others":    {20, 100 * time.Microsecond, 0},
		"as many as a conversation's most": {FewPackets, 100 * time.Microsecond, conversationSpin},
	} {
		var p Polling
		p.asleep(10, c.packets, c.slept)
		if p.span != c.want {
			t.Errorf("%s: spins for %v, want %v", name, p.span, c.want)
		}
	}
	var p Polling
	if p.asleep(1, 1, 0); p.span != minSpin {
		t.Errorf("after one short sleep it spins for %v, want %v", p.span, minSpin)
	}
	p.asleep(10, 1, 20*time.Microsecond)
	p.Received(3, 200, true)
	p.Received(3, 200, false) // behind those, with no empty round between
	if p.Began = 0; p.Spins(maxSpin) || !p.Spins(maxSpin-1) {
		t.Error("after many packets it spins as long as after few")
	}
	p.asleep(3, 1, 20*time.Microsecond)
	p.Vain = 2
	if p.Slept(20 * time.Microsecond); p.span != 0 {
		t.Errorf("woken for nothing it spins for %v", p.span)
	}
}

// TestPollingAwaits: after few packets a worker that spins leaves out looks for
// lookPause at a time, and after many it leaves out none.
func TestPollingAwaits(t *testing.T) {
	var p Polling
	p.asleep(10, 1, 20*time.Microsecond)
	p.Began = time.Second
	for _, c := range []struct {
		since time.Duration
		want  bool
	}{{0, true}, {lookPause - 1, true}, {lookPause, false}} {
		if got := p.Awaits(p.Began + c.since); got != c.want {
			t.Errorf("%v after the last packet it awaits an answer: %v, want %v", c.since, got, c.want)
		}
	}
	look := p.Began + lookPause
	p.Yielded(look, look)
	if !p.Awaits(look+lookPause-1) || p.Awaits(look+lookPause) {
		t.Errorf("after a look it does not go on for %v", lookPause)
	}
	if p.looked = p.Began + conversationSpin; p.Awaits(p.Began + conversationSpin) {
		t.Error("it awaits an answer for longer than it spins")
	}
	p.looked = 0
	if p.Received(FewPackets+1, 64, true); p.Awaits(p.Began) {
		t.Error("it awaits an answer after many packets")
	}
	if p.Received(1, 64<<10, true); p.Awaits(p.Began) {
		t.Error("it awaits an answer after 64 kB")
	}
}

// TestPollingDefers: a worker that let others run for long does not spin for a
// while, twice as long each time, unless it could spin well in between.
func TestPollingDefers(t *testing.T) {
	var p Polling
	p.asleep(10, 1, 20*time.Microsecond)
	now := time.Duration(0)
	yield := func(took time.Duration) {
		p.Yielded(now, now+took)
		now += took
		p.Began = now
	}
	yield(longYield - 1)
	if !p.Spins(now) {
		t.Error("a short moment of others' keeps it from spinning")
	}
	for want := leastDeference; want < 4*mostDeference; want *= 2 {
		yield(longYield)
		pause := min(want, mostDeference)
		if p.Spins(now) || p.until != now+pause {
			t.Fatalf("it spins again in %v, want %v", p.until-now, pause)
		}
		if now = p.until; !p.Spins(now + 1) {
			p.Began = now
			if !p.Spins(now) {
				t.Fatalf("it does not spin after %v", pause)
			}
		}
	}
	for range manyYields {
		yield(time.Microsecond)
	}
	yield(longYield)
	if p.until != now+leastDeference {
		t.Errorf("after many short ones it spins again in %v, want %v", p.until-now, leastDeference)
	}
}

// asleep has p sleep for so long, n times, each after a period of so many packets.
func (p *Polling) asleep(n, packets int, d time.Duration) {
	for range n {
		p.Received(packets, 64*packets, true)
		p.Slept(d)
	}
}
