// Package memory gives memory that the heap no longer needs back to the kernel.
//
// A switch or an agent needs several times the memory of its state while it reads that
// state: texts of entries, objects out of YAML. Go's collector next runs when the heap has
// doubled, or after two minutes, and returns only what is beyond that size. With 10,000
// rules, 10,000 Pods and 5,000 Services, half of each process's memory is of this kind.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// pause is the time between two checks of the heap.
	pause = 15 * time.Second
	// spare is the number of bytes that a collection must be able to return. A collection takes
	// some milliseconds for each 10 MB of state.
	spare = 16 << 20
)

// RunReturn returns spare memory until ctx ends.
func RunReturn(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			returnSpare()
		}
	}
}

// returnSpare collects and returns memory if enough is spare. It says whether it did.
func returnSpare() bool {
	if spareBytes() < spare {
		return false
	}
	debug.FreeOSMemory()
	return true
}

// spareBytes is how many bytes of the heap are free, or were allocated since the last
// collection.
func spareBytes() int64 {
	all := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(all)
	return int64(all[0].Value.Uint64()) + int64(all[1].Value.Uint64()) - int64(all[2].Value.Uint64())
}
