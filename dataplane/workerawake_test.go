package dataplane

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/ports/memory"
)

// awakeRequests is a sched.Awakener that notes what was asked.
type awakeRequests struct {
	awake, closed atomic.Bool
	count         atomic.Int32
}

func (r *awakeRequests) Keep(awake bool) error {
	r.count.Add(1)
	r.awake.Store(awake)
	return nil
}

func (r *awakeRequests) Close() error { r.closed.Store(true); return nil }

// TestWorkerKeepsAwake: a worker whose port brings a frame at a time asks for it, asks
// no more when nothing comes, and gives the request back in the end.
func TestWorkerKeepsAwake(t *testing.T) {
	now := func() int64 { return int64(sched.Clock()) }
	sw, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: now}), Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	port := memory.New("a", memory.Options{})
	if err := sw.AddPort(1, port); err != nil {
		t.Fatal(err)
	}
	var f awakeRequests
	sw.workers[0].hold.Awakener = &f
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	until := func(awake bool, meanwhile func()) {
		for end := time.Now().Add(time.Minute); f.awake.Load() != awake; meanwhile() {
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
	if f.count.Load() == 0 || f.awake.Load() {
		t.Errorf("asked %d times, and last for %v", f.count.Load(), f.awake.Load())
	}
	if sw.Workers()[0].KeptAwake <= 0 {
		t.Error("the worker's counts have no time")
	}
	if err := sw.Close(); err != nil || !f.closed.Load() {
		t.Errorf("closed: %v, %v", f.closed.Load(), err)
	}
}
