package dataplane

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/ports/memory"
)

// fakeAwakener notes what it was asked for.
type fakeAwakener struct {
	asked   []bool
	refuses bool
	closed  bool
}

func (f *fakeAwakener) Keep(awake bool) error {
	if f.refuses {
		return errors.New("refused")
	}
	f.asked = append(f.asked, awake)
	return nil
}

func (f *fakeAwakener) Close() error { f.closed = true; return nil }

// tell has so many hops happen.
func (a *wakefulness) tell(n int, few bool) {
	for range n {
		a.hop(few)
	}
}

// awake says whether processors are kept awake now.
func (a *wakefulness) awake() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since != 0
}

// TestWakefulness: processors stay awake from the 64th hop of a conversation until
// nothing has come for 2 ms, or as many batches that are none have; and during a
// collection beside packets.
func TestWakefulness(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*wakefulness)
		want    []bool
	}{
		"a short exchange": {func(a *wakefulness) { a.tell(chatter-1, true) }, nil},
		"a conversation":   {func(a *wakefulness) { a.tell(10*chatter, true) }, []bool{true}},
		"a stream":         {func(a *wakefulness) { a.tell(10*chatter, false) }, nil},
		"a conversation beside a stream": {func(a *wakefulness) {
			for range chatter {
				a.tell(2, true)
				a.tell(1, false)
			}
		}, []bool{true}},
		"exchanges with silence between": {func(a *wakefulness) {
			for range 10 {
				a.tell(chatter-1, true)
				a.slept(silence)
			}
		}, nil},
		"short sleeps between hops": {func(a *wakefulness) {
			for range chatter {
				a.tell(1, true)
				a.slept(silence / 2)
			}
		}, []bool{true}},
		"silence after it": {func(a *wakefulness) {
			a.tell(chatter, true)
			a.slept(silence / 2)
			a.slept(silence / 2)
			a.slept(time.Second)
		}, []bool{true, false}},
		"a stream after it": {func(a *wakefulness) { a.tell(chatter, true); a.tell(2*chatter, false) }, []bool{true, false}},
		"a collection beside packets": {func(a *wakefulness) {
			for now := time.Duration(1); now < 100; now++ {
				a.collection(now, 50, true)
			}
		}, []bool{true, false}},
		"a collection without packets": {func(a *wakefulness) { a.collection(1, 50, false) }, nil},
		"no packets in its midst": {func(a *wakefulness) {
			a.collection(1, 50, true)
			a.slept(silence)
			a.collection(2, 50, true)
		}, []bool{true, false}},
		"collections after each other": {func(a *wakefulness) {
			a.collection(1, 50, true)
			a.collection(2, 60, true)
			a.collection(55, 60, true)
		}, []bool{true}},
		"a conversation beyond a collection": {func(a *wakefulness) {
			a.collection(1, 50, true)
			a.tell(chatter, true)
			a.collection(50, 50, true)
		}, []bool{true}},
		"a collection beyond a conversation": {func(a *wakefulness) {
			a.tell(chatter, true)
			a.collection(1, 50, true)
			a.tell(chatter, false)
		}, []bool{true}},
		"another one": {func(a *wakefulness) { a.tell(chatter, true); a.slept(silence); a.tell(chatter, true) }, []bool{true, false, true}},
	} {
		var f fakeAwakener
		a := &wakefulness{request: &f}
		c.happens(a)
		if !slices.Equal(f.asked, c.want) {
			t.Errorf("%s: asked for %v, want %v", name, f.asked, c.want)
		}
		awake := len(c.want)%2 == 1
		if got := a.longestSleep(time.Second); (got == silence) != awake {
			t.Errorf("%s: it sleeps for %v", name, got)
		}
		if (a.total() > 0) != (len(c.want) > 0) {
			t.Errorf("%s: kept awake for %v", name, a.total())
		}
		if total := a.total(); !awake && a.total() != total {
			t.Errorf("%s: the time goes on when they may sleep", name)
		}
	}
}

// TestWakefulnessRefused: a kernel that refuses, or none to ask, changes nothing.
func TestWakefulnessRefused(t *testing.T) {
	for _, a := range []*wakefulness{{}, {request: &fakeAwakener{refuses: true}}} {
		a.tell(2*chatter, true)
		if a.longestSleep(time.Second) != time.Second || a.total() != 0 {
			t.Errorf("%+v: processors are said to be awake", a)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWorkerKeepsAwake: a worker whose port brings a frame at a time asks for it, asks
// no more when nothing comes, and gives the request back in the end.
func TestWorkerKeepsAwake(t *testing.T) {
	now := func() int64 { return int64(clock()) }
	sw, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: now}), Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	port := memory.New("a", memory.Options{})
	if err := sw.AddPort(1, port); err != nil {
		t.Fatal(err)
	}
	var f fakeAwakener
	a := &sw.workers[0].wakefulness
	a.request = &f
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	until := func(awake bool, meanwhile func()) {
		for end := time.Now().Add(time.Minute); a.awake() != awake; meanwhile() {
			if time.Now().After(end) {
				t.Fatalf("a minute later, kept awake is not %v", awake)
			}
		}
	}
	until(true, func() {
		came := port.Stats().RxPackets
		if err := port.Send(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		for port.Stats().RxPackets == came {
			runtime.Gosched()
		}
	})
	until(false, runtime.Gosched)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(f.asked); n == 0 || f.asked[n-1] {
		t.Errorf("asked for %v", f.asked)
	}
	if sw.Workers()[0].KeptAwake <= 0 {
		t.Error("the worker's counts have no time")
	}
	if err := sw.Close(); err != nil || !f.closed {
		t.Errorf("closed: %v, %v", f.closed, err)
	}
}
