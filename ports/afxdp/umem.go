package afxdp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// FrameSize is the size of one frame's buffer: a page, which is the kernel's limit without huge
// pages.
const FrameSize = 4096

// kernelHeadroom is the room that the kernel leaves in front of a received frame
// (XDP_PACKET_HEADROOM, 256 bytes). A tunnel's headers fit there, so the UMEM requests no
// headroom.
const kernelHeadroom = unix.XDP_PACKET_HEADROOM

const _ = uint(kernelHeadroom - packet.Headroom) // does not compile if too short

// UMEM is the memory that the kernel and the switch share, divided into frames.
//
//  1. One UMEM serves all ports of a switch, each with its own fill and completion ring
//     (XDP_SHARED_UMEM). So a frame received on one port leaves by another without a copy.
//  2. At any instant a frame has exactly one owner. That is a port's fill ring, its RX ring, a
//     worker, a port's TX ring, its completion ring, or the free list. The kernel's frames are in
//     the port's two held sets: those of the fill and RX ring, and those of the TX and completion
//     ring. When a port closes, the frames of both sets return to the free list, whatever the
//     kernel did with them.
//  3. The kernel binds a UMEM to a socket, and further sockets to it through a living one, the
//     donor. Any bound socket can be the donor. If none is bound, the same memory is registered
//     again.
//  4. The memory is a memfd, so that another process can take it over (adopt.go). That process
//     reads in the ports' ledgers which frames the kernel has. All others are free.
//  5. The frames' structs are made once, one for each buffer, so packets allocate nothing. The
//     free list has one lock, taken once per batch.
type UMEM struct {
	fd     int // of the memory
	memory []byte
	frames []packet.Frame

	large *packet.HeapPool // frames gathered from many buffers; nil if frames have one

	mu   sync.Mutex
	free []uint32 // a stack: the frame used last is still in the CPU cache

	open    sync.Mutex // held while a port opens or closes
	sockets []int      // bound sockets, possible donors
	closed  bool
	shared  bool    // another process decides which frames are free
	adopted []*Port // adopted ports, until freeRest
	alone   bool    // of a given port
	idle    bool    // of a port to give: this process has used none of its frames

	multiBuffer bool // the kernel supports multi-buffer frames
	requests    int  // bytes in front of a sent frame for a request; 0 if the kernel takes none
}

// NewUMEM maps memory for this many frames of FrameSize bytes. It fails if the kernel has no
// AF_XDP or the process lacks CAP_NET_RAW. The kernel pins the memory. Without CAP_IPC_LOCK, the
// memory must be within the process's limit of locked memory; otherwise Open fails.
func NewUMEM(frames int) (*UMEM, error) {
	if frames <= 0 {
		return nil, fmt.Errorf("afxdp: UMEM of %d frames", frames)
	}
	multiBuffer, err := available()
	if err != nil {
		return nil, err
	}
	fd, memory, err := newShared("antrail-umem", frames*FrameSize)
	if err != nil {
		return nil, fmt.Errorf("afxdp: %w", err)
	}
	u, err := newUMEM(fd, memory, multiBuffer)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("afxdp: %w", err), unix.Close(fd))
	}
	u.setFree(nil)
	return u, nil
}

// newUMEM is a UMEM over existing memory. None of its frames is free. If it fails, it unmaps the
// memory but does not close its descriptor.
func newUMEM(fd int, memory []byte, multiBuffer bool) (u *UMEM, err error) {
	frames := len(memory) / FrameSize
	u = &UMEM{fd: fd, memory: memory, frames: make([]packet.Frame, frames), free: make([]uint32, 0, frames), multiBuffer: multiBuffer}
	if multiBuffer {
		if u.large, err = ports.LargePool(largeFrames); err != nil {
			return nil, errors.Join(err, unix.Munmap(memory))
		}
	}
	for i := range u.frames {
		start := i * FrameSize
		u.frames[i].Init(memory[start:start+FrameSize:start+FrameSize], u)
		u.frames[i].Index = uint32(i)
	}
	return u, nil
}

// setFree makes all frames free that are not in the set but.
func (u *UMEM) setFree(but held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.free = u.free[:0]
	for i := len(u.frames) - 1; i >= 0; i-- {
		if but == nil || !but.has(uint32(i)) {
			u.free = append(u.free, uint32(i))
		}
	}
}

// registerAny registers the memory with room for requests, or without if the kernel does not
// support them (before Linux 6.8). The caller holds u.open.
func (u *UMEM) registerAny(fd int) error {
	err := u.register(fd, requestLen)
	if !errors.Is(err, unix.EINVAL) {
		u.requests = requestLen
		return err
	}
	u.requests = 0
	return u.register(fd, 0)
}

// available returns an error if this process cannot open AF_XDP sockets. multiBuffer says whether
// this kernel supports multi-buffer frames (Linux 6.6). An older kernel refuses the flag before
// it looks for the device.
func available() (multiBuffer bool, err error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("afxdp: open a socket: %w", err)
	}
	const nowhere = 0 // no device has this index
	err = unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_USE_SG, Ifindex: nowhere})
	return errors.Is(err, unix.ENODEV), unix.Close(fd)
}

// getLarge is an empty frame for a multi-buffer frame; nil if none is free.
func (u *UMEM) getLarge() *packet.Frame {
	var one [1]*packet.Frame
	u.large.Get(one[:])
	return one[0]
}

// Frames is the number of frames.
func (u *UMEM) Frames() int { return len(u.frames) }

// Ports is the number of open ports.
func (u *UMEM) Ports() int {
	u.open.Lock()
	defer u.open.Unlock()
	return len(u.sockets)
}

// isShared says whether another process decides which frames are free.
func (u *UMEM) isShared() bool {
	u.open.Lock()
	defer u.open.Unlock()
	return u.shared
}

// Free is how many frames are in the free list now.
func (u *UMEM) Free() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.free)
}

// Get takes up to len(batch) empty frames from the free list and returns how many.
func (u *UMEM) Get(batch []*packet.Frame) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(len(batch), len(u.free))
	rest := len(u.free) - n
	for i, index := range u.free[rest:] {
		batch[i] = &u.frames[index]
		batch[i].Reset()
	}
	u.free = u.free[:rest]
	return n
}

// Put returns frames of this UMEM to the free list; Release calls it.
func (u *UMEM) Put(frames []*packet.Frame) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.checkRoom(len(frames))
	for _, f := range frames {
		u.free = append(u.free, f.Index)
	}
}

// checkRoom panics if more frames are returned than exist. Then one of them is in two places, and
// one pod's bytes would reach another pod.
func (u *UMEM) checkRoom(n int) {
	if len(u.free)+n > len(u.frames) {
		panic("afxdp: a frame was released twice")
	}
}

// takeFree moves up to len(dst) free frames into dst and returns how many.
func (u *UMEM) takeFree(dst []uint32) int {
	if len(dst) == 0 {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n := copy(dst, u.free[max(0, len(u.free)-len(dst)):])
	u.free = u.free[:len(u.free)-n]
	return n
}

// give returns frames to the free list by number.
func (u *UMEM) give(src []uint32) {
	if len(src) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.checkRoom(len(src))
	u.free = append(u.free, src...)
}

// owns says whether f is one of this UMEM's frames.
func (u *UMEM) owns(f *packet.Frame) bool {
	p, ok := f.Pool().(*UMEM)
	return ok && p == u
}

// receive is the frame that a descriptor names, with its bounds. It is nil if the descriptor is
// outside the memory or crosses a frame's end.
func (u *UMEM) receive(d unix.XDPDesc) *packet.Frame {
	index := d.Addr / FrameSize
	if index >= uint64(len(u.frames)) {
		return nil
	}
	f := &u.frames[index]
	f.Reset()
	if !f.SetBounds(int(d.Addr%FrameSize), int(d.Len)) {
		return nil
	}
	return f
}

// touch reads a byte of each frame, which another processor has written. Fetching their lines one
// after the other, as each is parsed, costs several times as much as fetching them together.
func touch(frames []*packet.Frame) (sum byte) {
	for _, f := range frames {
		if b := f.Bytes(); len(b) > 0 {
			sum ^= b[0]
		}
	}
	return sum
}

// address is the offset of a frame's first byte in the UMEM.
func address(f *packet.Frame) uint64 {
	return uint64(f.Index)*FrameSize + uint64(f.Headroom())
}

// Close unmaps the memory. It refuses if a port is open or a frame is not in the free list,
// because its holder may still read it. For another process's memory it cannot know that, so the
// memory stays mapped until this process ends.
func (u *UMEM) Close() error {
	u.open.Lock()
	defer u.open.Unlock()
	switch {
	case u.closed:
		return nil
	case len(u.sockets) > 0:
		return fmt.Errorf("afxdp: close UMEM: %d ports are open", len(u.sockets))
	case u.shared:
		u.closed = true
		return unix.Close(u.fd)
	case u.Free() != len(u.frames):
		return fmt.Errorf("afxdp: close UMEM: %d frames are in use", len(u.frames)-u.Free())
	}
	u.closed = true
	u.mu.Lock()
	u.free = nil
	u.mu.Unlock()
	return errors.Join(unix.Munmap(u.memory), unix.Close(u.fd))
}

var errClosed = errors.New("afxdp: the UMEM is closed")
