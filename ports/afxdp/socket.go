package afxdp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// socket is an AF_XDP socket with its four rings, bound to one queue of one netdev. It knows
// nothing of frames.
//
// If frames are copied, it is two sockets: one receives, and one sends from the same UMEM, queue
// and completion ring. Each time a copied frame has left, the kernel wakes the thread that waits
// for its socket, because now there is room. A worker waits for everything that its ports
// receive. With one socket for both, a sent frame would cost a tenth more
// (docs/decisions/035-sockets-that-only-send.md).
type socket struct {
	fd   int                // receives; a worker waits for it
	out  int                // sends; equal to fd if frames are not copied
	busy bool               // our calls drive the card's queue
	fill ring[uint64]       // to the kernel: frames to receive into
	rx   ring[unix.XDPDesc] // from the kernel: frames received
	tx   ring[unix.XDPDesc] // to the kernel: frames to send
	done ring[uint64]       // from the kernel: frames sent (completion ring)
}

// target is the queue to which a socket is bound.
type target struct {
	index, queue int    // netdev and receive queue
	flags        uint16 // XDP_COPY or XDP_ZEROCOPY, XDP_USE_SG
	size         int    // slots of each ring, a power of two
	apart        bool   // one socket receives and another sends
}

// openSocket binds a new socket to the target. It shares the UMEM through a donor if there is
// one. The caller holds u.open.
func openSocket(u *UMEM, to target) (*socket, error) {
	for i := len(u.sockets) - 1; i >= 0; i-- {
		s, err := tryShared(to, u.sockets[i])
		if !errors.Is(err, unix.EBADF) {
			return s, err
		}
		// That donor's netdev is gone; another one may be alive.
	}
	s, err := newSocket(to)
	if err != nil {
		return nil, err
	}
	err = u.registerAny(s.fd)
	if err == nil {
		err = s.mapRings(to.size)
	}
	if err == nil {
		err = s.bind(to, unix.SockaddrXDP{Flags: to.flags | unix.XDP_USE_NEED_WAKEUP})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// tryShared opens a socket on the UMEM of the donor. EBADF means that the donor is no longer
// bound. The donor determines whether frames are copied and may have many buffers.
func tryShared(to target, donor int) (*socket, error) {
	s, err := newSocket(to)
	if err != nil {
		return nil, err
	}
	err = s.mapRings(to.size)
	if err == nil {
		err = s.bind(to, unix.SockaddrXDP{Flags: unix.XDP_SHARED_UMEM, SharedUmemFD: uint32(donor)})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// newSocket opens the sockets and sets the sizes of their rings.
func newSocket(to target) (*socket, error) {
	in, out := []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING}, []int{unix.XDP_TX_RING}
	if !to.apart {
		in, out = append(in, out...), nil
	}
	s := &socket{fd: -1, out: -1}
	var err error
	if s.fd, err = openRings(to.size, in); err != nil {
		return nil, err
	}
	if s.out = s.fd; to.apart {
		if s.out, err = openRings(to.size, out); err != nil {
			return nil, errors.Join(err, unix.Close(s.fd))
		}
	}
	// One sendto sends 32 frames unless the kernel lets us raise that (Linux 6.17 and later).
	// kick repeats the call for older kernels, and for more frames.
	_ = unix.SetsockoptInt(s.out, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, portion)
	return s, nil
}

// openRings opens a socket with these rings of size slots.
func openRings(size int, rings []int) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	for _, option := range rings {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, option, size); err != nil {
			return -1, errors.Join(fmt.Errorf("rings of %d: %w", size, err), unix.Close(fd))
		}
	}
	return fd, nil
}

func (s *socket) mapRings(size int) error {
	var at unix.XDPMmapOffsets
	err := getsockopt(s.fd, unix.XDP_MMAP_OFFSETS, &at)
	if err != nil {
		return fmt.Errorf("ring offsets: %w", err)
	}
	if s.fill, err = mapRing[uint64](s.fd, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr, size); err != nil {
		return err
	}
	if s.done, err = mapRing[uint64](s.fd, unix.XDP_UMEM_PGOFF_COMPLETION_RING, at.Cr, size); err != nil {
		return err
	}
	if s.rx, err = mapRing[unix.XDPDesc](s.fd, unix.XDP_PGOFF_RX_RING, at.Rx, size); err != nil {
		return err
	}
	s.tx, err = mapRing[unix.XDPDesc](s.out, unix.XDP_PGOFF_TX_RING, at.Tx, size)
	return err
}

// queueFree is how long bind waits for a queue that is busy. The kernel frees the queue of
// a closed socket a moment later (net/xdp/xsk_buff_pool.c, xp_put_pool). Without the wait,
// a switch that follows a killed one would not get the queue.
const queueFree = 500 * time.Millisecond

// bind binds the receiving socket. Then it binds the sending socket to the same UMEM.
func (s *socket) bind(to target, address unix.SockaddrXDP) error {
	address.Ifindex, address.QueueID = uint32(to.index), uint32(to.queue)
	err := unix.Bind(s.fd, &address)
	for end := time.Now().Add(queueFree); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		err = unix.Bind(s.fd, &address)
	}
	if err == nil && s.out != s.fd {
		address.Flags, address.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(s.fd)
		err = unix.Bind(s.out, &address)
	}
	if err != nil {
		return fmt.Errorf("bind to queue %d: %w", to.queue, err)
	}
	return nil
}

// busyPoll makes calls on the socket drive the card's queue.
func (s *socket) busyPoll(b BusyPoll) error {
	if b.Time == 0 {
		return nil
	}
	options := [][2]int{{unix.SO_PREFER_BUSY_POLL, 1}, {unix.SO_BUSY_POLL, int(b.Time.Microseconds())}}
	if b.Budget != 0 {
		options = append(options, [2]int{unix.SO_BUSY_POLL_BUDGET, b.Budget})
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o[0], o[1]); err != nil {
			return fmt.Errorf("busy polling: %w", err)
		}
	}
	s.busy = true
	return nil
}

// polls says whether another process has called busyPoll.
func (s *socket) polls() bool {
	on, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL)
	return err == nil && on != 0
}

// drive makes the kernel ask the card for frames.
func (s *socket) drive() {
	_, _, _ = unix.Recvfrom(s.fd, nil, unix.MSG_DONTWAIT) // it asks, whatever it returns
}

// zeroCopy says whether the kernel moves frames without copying them.
func (s *socket) zeroCopy() bool {
	var options uint32
	return getsockopt(s.fd, unix.XDP_OPTIONS, &options) == nil && options&unix.XDP_OPTIONS_ZEROCOPY != 0
}

// kick makes the kernel send the frames in the TX ring. Frames that it cannot send now (no
// memory, device queue full) stay there for the next kick. kick returns the error of a link that
// is down (ENETDOWN) or gone (ENXIO, EBADF), and nil otherwise.
func (s *socket) kick() error {
	if !s.busy && !s.tx.needsWakeup() {
		return nil
	}
	for left := s.tx.pending(); left > 0; {
		// RawSyscall hides the call from Go's scheduler. The call does not wait and takes a
		// microsecond per frame. If the scheduler knew of it, it would take the processor away
		// meanwhile. A goroutine that stops the world waits for the call, so one call sends at
		// most a portion.
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.out), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0, unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ENOBUFS:
		default:
			return errno
		}
		now := s.tx.pending()
		if now >= left { // no progress: try again in the next round
			return nil
		}
		left = now
	}
	return nil
}

// stats are the kernel's counters of both directions.
func (s *socket) stats() (all unix.XDPStatistics, err error) {
	if err = getsockopt(s.fd, unix.XDP_STATISTICS, &all); err == nil && s.out != s.fd {
		var sent unix.XDPStatistics
		err = getsockopt(s.out, unix.XDP_STATISTICS, &sent)
		all.Tx_invalid_descs, all.Tx_ring_empty_descs = sent.Tx_invalid_descs, sent.Tx_ring_empty_descs
	}
	return all, err
}

// wakeReceiver makes a kernel that ran out of frames read the fill ring again. Only drivers that
// receive without a copy need it.
func (s *socket) wakeReceiver(scratch []unix.PollFd) {
	if s.fill.needsWakeup() {
		scratch[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
		_, _ = unix.Poll(scratch[:1], 0) // poll(2) wakes it, whatever it returns
	}
}

// close closes the socket. The kernel then releases all frames.
func (s *socket) close() error {
	err := unix.Close(s.fd)
	if s.out != s.fd {
		err = errors.Join(err, unix.Close(s.out))
	}
	return errors.Join(err, s.unmap())
}

func (s *socket) unmap() error {
	var err error
	for _, memory := range [][]byte{s.fill.memory, s.done.memory, s.rx.memory, s.tx.memory} {
		if memory != nil {
			err = errors.Join(err, unix.Munmap(memory))
		}
	}
	return err
}
