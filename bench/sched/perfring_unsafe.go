package sched

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// perfRing is the ring of one processor's perf events, laid out as in perf_event_open(2). Its first
// page has the positions of kernel and reader. The pages behind it have records of 8-byte words.
type perfRing struct {
	fd     int
	memory []byte
	page   *unix.PerfEventMmapPage
	words  []uint64 // the records' pages, a power of two
	record [maxRecord]uint64
}

const (
	// perfPages is the number of pages for records. They hold those of more than half a second.
	perfPages = 256
	// maxRecord is how many words of a record are read.
	maxRecord = 4
)

// openPerfRing subscribes to two kinds of events of a processor, with times of CLOCK_MONOTONIC. A timer
// event has the interrupted thread; it comes every period, unless the processor is idle. A switch event
// comes with every switch from one thread to another.
func openPerfRing(cpu int, period time.Duration) (*perfRing, error) {
	attr := &unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config:      unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample:      uint64(period),
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME,
		Bits:        unix.PerfBitExcludeIdle | unix.PerfBitSampleIDAll | unix.PerfBitContextSwitch | unix.PerfBitUseClockID,
		Clockid:     unix.CLOCK_MONOTONIC,
	}
	fd, err := unix.PerfEventOpen(attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("perf_event_open: %w", err)
	}
	size := os.Getpagesize()
	memory, err := unix.Mmap(fd, 0, (1+perfPages)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mmap of perf events: %w", err), unix.Close(fd))
	}
	return &perfRing{
		fd: fd, memory: memory,
		page:  (*unix.PerfEventMmapPage)(unsafe.Pointer(&memory[0])),
		words: unsafe.Slice((*uint64)(unsafe.Pointer(&memory[size])), perfPages*size/8),
	}, nil
}

func (r *perfRing) close() error { return errors.Join(unix.Munmap(r.memory), unix.Close(r.fd)) }

// next returns the first maxRecord words of the next record, and whether there is one. They are
// valid until next is called again.
func (r *perfRing) next() ([]uint64, bool) {
	tail := r.page.Data_tail
	if atomic.LoadUint64(&r.page.Data_head) == tail {
		return nil, false
	}
	at, mask := tail/8, uint64(len(r.words)-1)
	n := r.words[at&mask] >> 48 // the record's bytes are the last part of its header
	for i := range min(n/8, maxRecord) {
		r.record[i] = r.words[(at+i)&mask]
	}
	atomic.StoreUint64(&r.page.Data_tail, tail+n)
	return r.record[:], true
}
