//go:build linux

package ports

import (
	"fmt"
	"runtime"

	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// LargePool makes a pool of frames for up to 64 kB each. Its memory comes from the kernel, not
// from Go.
//
//  1. Memory that no frame has used yet costs nothing.
//  2. The garbage collector, which lets garbage grow to the size of the heap, does not count it.
//  3. The memory is unmapped when neither the pool nor one of its frames is reachable.
func LargePool(frames int) (*packet.HeapPool, error) {
	mem, err := unix.Mmap(-1, 0, frames*packet.LargeBuffer, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for %d frames of 64 kB: %w", frames, err)
	}
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE) // otherwise a small frame would use 2 MB; a kernel without huge pages returns an error
	p := packet.NewPoolOver(mem, packet.LargeBuffer)
	runtime.AddCleanup(p, func(mem []byte) { unix.Munmap(mem) }, mem)
	return p, nil
}
