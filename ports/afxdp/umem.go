package afxdp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// FrameSize is the bytes of one frame's buffer: a page, which is the largest
// that the kernel takes without huge pages.
const FrameSize = 4096

// kernelHeadroom is what the kernel itself leaves free in front of a received
// frame (XDP_PACKET_HEADROOM, 256 bytes). A tunnel's headers fit there, so the
// UMEM asks for no headroom of its own.
const kernelHeadroom = unix.XDP_PACKET_HEADROOM

const _ = uint(kernelHeadroom - packet.Headroom) // does not compile when too short

// UMEM is the memory that the kernel and the switch share, cut into frames. One UMEM
// serves all ports of a switch, each with its own fill and completion ring
// (XDP_SHARED_UMEM). So a frame received on one port leaves by another without being
// copied.
//
// At any instant a frame has exactly one owner. That is a port's fill ring, its RX ring,
// a worker, a port's TX ring, its completion ring, or the free list. The first two and
// the fourth and fifth are a port's `held` sets: what the kernel has. When a port closes,
// what it holds there goes back to the free list, whatever the kernel did with it.
//
// The kernel binds a UMEM to a socket, and further sockets to it through a
// living one, the donor. Any socket that is still bound can be the donor; when
// none is, the same memory is registered anew.
//
// The memory is a memfd, so that another process can go on with it (adopt.go). That
// process learns from the ports' ledgers what the kernel has, and all else is free.
//
// The frames' structs are made once, one for each buffer; nothing is allocated
// per packet. The free list has one lock, taken once per batch.
type UMEM struct {
	fd     int // of the memory
	memory []byte
	frames []packet.Frame

	large *packet.HeapPool // frames that are gathered from many buffers; nil without chains

	mu   sync.Mutex
	free []uint32 // a stack: the frame last used is the one still in the cache

	open    sync.Mutex // held while a port opens or closes
	sockets []int      // bound sockets, possible donors
	closed  bool
	shared  bool    // another process decides whose the frames are
	adopted []*Port // until the frames that they have not are free
	alone   bool    // of a port that was given
	idle    bool    // of one that is to be given: nobody here has a frame

	multiBuffer bool // the kernel knows frames of many buffers
	requests    int  // bytes in front of a sent frame for a request; 0 when the kernel takes none
}

// NewUMEM maps memory for this many frames of FrameSize bytes. It fails when
// the kernel has no AF_XDP or the process no right to it (CAP_NET_RAW). The
// kernel pins the memory: without CAP_IPC_LOCK it has to lie within the
// process's limit of locked memory, or Open fails.
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

// newUMEM is one in memory that is there; none of its frames is free. When it fails,
// only the memory is given back, and not its descriptor.
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

// setFree makes all frames free that are not in a set.
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

// registerAny registers the memory with room for requests, or without where the
// kernel knows none (before Linux 6.8). The caller holds u.open.
func (u *UMEM) registerAny(fd int) error {
	err := u.register(fd, requestLen)
	if !errors.Is(err, unix.EINVAL) {
		u.requests = requestLen
		return err
	}
	u.requests = 0
	return u.register(fd, 0)
}

// available says why this process cannot open AF_XDP sockets, and whether those of this
// kernel know frames of many buffers (Linux 6.6). An older kernel does not look for the
// device before it refuses the flag.
func available() (multiBuffer bool, err error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("afxdp: open a socket: %w", err)
	}
	const nowhere = 0 // no device has this index
	err = unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_USE_SG, Ifindex: nowhere})
	return errors.Is(err, unix.ENODEV), unix.Close(fd)
}

// getLarge is an empty frame for a chain; nil when none is free.
func (u *UMEM) getLarge() *packet.Frame {
	var one [1]*packet.Frame
	u.large.Get(one[:])
	return one[0]
}

// Frames is how many frames there are.
func (u *UMEM) Frames() int { return len(u.frames) }

// Ports is how many ports are open on it.
func (u *UMEM) Ports() int {
	u.open.Lock()
	defer u.open.Unlock()
	return len(u.sockets)
}

// isShared says whether another process decides whose the frames are.
func (u *UMEM) isShared() bool {
	u.open.Lock()
	defer u.open.Unlock()
	return u.shared
}

// Free is how many of them are in the free list now.
func (u *UMEM) Free() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.free)
}

// Get takes up to len(batch) empty frames out of the free list and returns how
// many.
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

// Put gives frames of this UMEM back; Release calls it.
func (u *UMEM) Put(frames []*packet.Frame) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.checkRoom(len(frames))
	for _, f := range frames {
		u.free = append(u.free, f.Index)
	}
}

// checkRoom stops the program when more frames come back than there are. One of them is
// in two places, and one pod's bytes would reach another.
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

// give puts frames back by number.
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

// receive is the frame that the kernel describes, with its bounds; nil when
// the description lies outside of the memory or across a frame's end.
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

// touch reads a byte of each frame. Another processor has written them. Fetching their
// lines one after the other, as each is parsed, costs several times what it costs to
// fetch them together.
func touch(frames []*packet.Frame) (sum byte) {
	for _, f := range frames {
		if b := f.Bytes(); len(b) > 0 {
			sum ^= b[0]
		}
	}
	return sum
}

// address is where a frame's first byte lies in the UMEM.
func address(f *packet.Frame) uint64 {
	return uint64(f.Index)*FrameSize + uint64(f.Headroom())
}

// Close unmaps the memory. It refuses while a port is open or a frame is not
// back in the free list, since somebody may still read it. Of memory that is another
// process's nobody can tell that: it stays mapped until this one ends.
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
