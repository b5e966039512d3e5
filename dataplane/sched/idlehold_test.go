package sched

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// fakeAwakener notes what it was asked for.
type fakeAwakener struct {
	requests []bool
	refuses  bool
	closed   bool
}

func (f *fakeAwakener) Keep(awake bool) error {
	if f.refuses {
		return errors.New("refused")
	}
	f.requests = append(f.requests, awake)
	return nil
}

func (f *fakeAwakener) Close() error { f.closed = true; return nil }

// seeHops has so many hops happen.
func (a *IdleHold) seeHops(n int, few bool) {
	for range n {
		a.Hop(few)
	}
}

// TestIdleHold: processors stay awake from the 64th hop of a conversation until
// nothing has come for 2 ms, or as many batches that are none have; and during a
// collection beside packets.
func TestIdleHold(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*IdleHold)
		want    []bool
	}{
		"a short exchange": {func(a *IdleHold) { a.seeHops(chatter-1, true) }, nil},
		"a conversation":   {func(a *IdleHold) { a.seeHops(10*chatter, true) }, []bool{true}},
		"a stream":         {func(a *IdleHold) { a.seeHops(10*chatter, false) }, nil},
		"a conversation beside a stream": {func(a *IdleHold) {
			for range chatter {
				a.seeHops(2, true)
				a.seeHops(1, false)
			}
		}, []bool{true}},
		"exchanges with silence between": {func(a *IdleHold) {
			for range 10 {
				a.seeHops(chatter-1, true)
				a.Slept(silence)
			}
		}, nil},
		"short sleeps between hops": {func(a *IdleHold) {
			for range chatter {
				a.seeHops(1, true)
				a.Slept(silence / 2)
			}
		}, []bool{true}},
		"silence after it": {func(a *IdleHold) {
			a.seeHops(chatter, true)
			a.Slept(silence / 2)
			a.Slept(silence / 2)
			a.Slept(time.Second)
		}, []bool{true, false}},
		"a stream after it": {func(a *IdleHold) { a.seeHops(chatter, true); a.seeHops(2*chatter, false) }, []bool{true, false}},
		"a collection beside packets": {func(a *IdleHold) {
			for now := time.Duration(1); now < 100; now++ {
				a.Collection(now, 50, true)
			}
		}, []bool{true, false}},
		"a collection without packets": {func(a *IdleHold) { a.Collection(1, 50, false) }, nil},
		"no packets in its midst": {func(a *IdleHold) {
			a.Collection(1, 50, true)
			a.Slept(silence)
			a.Collection(2, 50, true)
		}, []bool{true, false}},
		"collections after each other": {func(a *IdleHold) {
			a.Collection(1, 50, true)
			a.Collection(2, 60, true)
			a.Collection(55, 60, true)
		}, []bool{true}},
		"a conversation beyond a collection": {func(a *IdleHold) {
			a.Collection(1, 50, true)
			a.seeHops(chatter, true)
			a.Collection(50, 50, true)
		}, []bool{true}},
		"a collection beyond a conversation": {func(a *IdleHold) {
			a.seeHops(chatter, true)
			a.Collection(1, 50, true)
			a.seeHops(chatter, false)
		}, []bool{true}},
		"another one": {func(a *IdleHold) { a.seeHops(chatter, true); a.Slept(silence); a.seeHops(chatter, true) }, []bool{true, false, true}},
	} {
		var f fakeAwakener
		a := &IdleHold{Awakener: &f}
		c.happens(a)
		if !slices.Equal(f.requests, c.want) {
			t.Errorf("%s: asked for %v, want %v", name, f.requests, c.want)
		}
		awake := len(c.want)%2 == 1
		if got := a.LongestSleep(time.Second); (got == silence) != awake {
			t.Errorf("%s: it sleeps for %v", name, got)
		}
		if (a.Total() > 0) != (len(c.want) > 0) {
			t.Errorf("%s: kept awake for %v", name, a.Total())
		}
		if total := a.Total(); !awake && a.Total() != total {
			t.Errorf("%s: the time goes on when they may sleep", name)
		}
	}
}

// TestIdleHoldRefused: a kernel that refuses, or none to ask, changes nothing.
func TestIdleHoldRefused(t *testing.T) {
	for _, a := range []*IdleHold{{}, {Awakener: &fakeAwakener{refuses: true}}} {
		a.seeHops(2*chatter, true)
		if a.LongestSleep(time.Second) != time.Second || a.Total() != 0 {
			t.Errorf("%+v: processors are said to be awake", a)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
