package dataplane

import (
	"testing"
	"time"
)

// asleep has p sleep for so long, n times, each after a period of so many packets.
func (p *patience) asleep(n, packets int, d time.Duration) {
	for range n {
		p.bring(packets, 64*packets, true)
		p.slept(d)
	}
}

// TestPatience: how long a worker spins follows how long it slept, and how many
// packets came before.
func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		packets int
		slept   time.Duration
		want    time.Duration
	}{
		"answers soon":                     {1, 20 * time.Microsecond, chainSpin},
		"answers by way of others":         {2, 100 * time.Microsecond, chainSpin},
		"answers late":                     {1, 200 * time.Microsecond, 0},
		"many packets soon":                {20, 20 * time.Microsecond, maxSpin},
		"many packets by way of others":    {20, 100 * time.Microsecond, 0},
		"as many as a conversation's most": {fewPackets, 100 * time.Microsecond, chainSpin},
	} {
		var p patience
		p.asleep(10, c.packets, c.slept)
		if p.span != c.want {
			t.Errorf("%s: spins for %v, want %v", name, p.span, c.want)
		}
	}
	var p patience
	if p.asleep(1, 1, 0); p.span != minSpin {
		t.Errorf("after one short sleep it spins for %v, want %v", p.span, minSpin)
	}
	p.asleep(10, 1, 20*time.Microsecond)
	p.bring(3, 200, true)
	p.bring(3, 200, false) // behind those, with no empty round between
	if p.began = 0; p.spins(maxSpin) || !p.spins(maxSpin-1) {
		t.Error("after many packets it spins as long as after few")
	}
	p.asleep(3, 1, 20*time.Microsecond)
	p.vain = 2
	if p.slept(20 * time.Microsecond); p.span != 0 {
		t.Errorf("woken for nothing it spins for %v", p.span)
	}
}

// TestPatienceAwaits: after few packets a worker that spins leaves out looks for
// lookPause at a time, and after many it leaves out none.
func TestPatienceAwaits(t *testing.T) {
	var p patience
	p.asleep(10, 1, 20*time.Microsecond)
	p.began = time.Second
	for _, c := range []struct {
		since time.Duration
		want  bool
	}{{0, true}, {lookPause - 1, true}, {lookPause, false}} {
		if got := p.awaits(p.began + c.since); got != c.want {
			t.Errorf("%v after the last packet it awaits an answer: %v, want %v", c.since, got, c.want)
		}
	}
	look := p.began + lookPause
	p.yielded(look, look)
	if !p.awaits(look+lookPause-1) || p.awaits(look+lookPause) {
		t.Errorf("after a look it does not go on for %v", lookPause)
	}
	if p.looked = p.began + chainSpin; p.awaits(p.began + chainSpin) {
		t.Error("it awaits an answer for longer than it spins")
	}
	p.looked = 0
	if p.bring(fewPackets+1, 64, true); p.awaits(p.began) {
		t.Error("it awaits an answer after many packets")
	}
	if p.bring(1, 64<<10, true); p.awaits(p.began) {
		t.Error("it awaits an answer after 64 kB")
	}
}

// TestPatienceDefers: a worker that let others run for long does not spin for a
// while, twice as long each time, unless it could spin well in between.
func TestPatienceDefers(t *testing.T) {
	var p patience
	p.asleep(10, 1, 20*time.Microsecond)
	now := time.Duration(0)
	yield := func(took time.Duration) {
		p.yielded(now, now+took)
		now += took
		p.began = now
	}
	yield(longYield - 1)
	if !p.spins(now) {
		t.Error("a short moment of others' keeps it from spinning")
	}
	for want := leastDeference; want < 4*mostDeference; want *= 2 {
		yield(longYield)
		pause := min(want, mostDeference)
		if p.spins(now) || p.until != now+pause {
			t.Fatalf("it spins again in %v, want %v", p.until-now, pause)
		}
		if now = p.until; !p.spins(now + 1) {
			p.began = now
			if !p.spins(now) {
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
