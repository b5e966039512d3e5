package offload

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// controlLine is a line of the control map. The first has the generation in run and Learnings in
// taken, and counts dropped packets. The others are the processors'.
type controlLine struct {
	run, taken atomic.Uint32
	dropped    atomic.Uint64
	_          [48]byte
}

// The programs and the types must agree on sizes.
const (
	_ = uint(offloadSize-unsafe.Sizeof(ports.OffloadEntry{})) + uint(unsafe.Sizeof(ports.OffloadEntry{})-offloadSize)
	_ = uint(connSize-unsafe.Sizeof(ports.SharedConn{})) + uint(unsafe.Sizeof(ports.SharedConn{})-connSize)
	_ = uint(line-unsafe.Sizeof(controlLine{})) + uint(unsafe.Sizeof(controlLine{})-line)
)

// mapAll maps the arrays' memory into the process. It stays mapped until the process ends,
// because a worker may still read an offloaded connection while the agent stops.
func (k *Kernel) mapAll(room uint32) (err error) {
	if k.offloadsAt, err = mapArray[ports.OffloadEntry](k.maps.offloads, int(room)); err != nil {
		return err
	}
	if k.connsAt, err = mapArray[ports.SharedConn](k.maps.conns, int(room)); err != nil {
		return err
	}
	k.controlAt, err = mapArray[controlLine](k.maps.control, 1+k.lines)
	return err
}

// mapArray is a map's memory as n values of a type without pointers. The type's size equals that
// of the map's values, or divides it.
func mapArray[T any](m *ebpf.Map, n int) ([]T, error) {
	var one T
	page := os.Getpagesize()
	size := (n*int(unsafe.Sizeof(one)) + page - 1) / page * page
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %v into memory: %w", m, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}
