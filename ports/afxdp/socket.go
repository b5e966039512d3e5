package afxdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// socket is one AF_XDP socket with its four rings, bound to one queue of one
// netdev. It knows nothing of frames.
type socket struct {
	fd   int
	busy bool               // our calls drive the card's queue
	fill ring[uint64]       // to the kernel: frames to receive into
	rx   ring[unix.XDPDesc] // from the kernel: frames received
	tx   ring[unix.XDPDesc] // to the kernel: frames to send
	done ring[uint64]       // from the kernel: frames sent (completion ring)
}

// target is where a socket is bound.
type target struct {
	index, queue int    // netdev and receive queue
	flags        uint16 // XDP_COPY or XDP_ZEROCOPY, XDP_USE_SG
	size         int    // slots of each ring, a power of two
}

// openSocket binds a new socket to the target, sharing the UMEM through a
// donor when there is one. The caller holds u.open.
func openSocket(u *UMEM, to target) (*socket, error) {
	for i := len(u.sockets) - 1; i >= 0; i-- {
		s, err := tryShared(to, u.sockets[i])
		if !errors.Is(err, unix.EBADF) {
			return s, err
		}
		// That donor's netdev is gone; another one may be alive.
	}
	s, err := newSocket(to.size)
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

// tryShared opens a socket on the UMEM of the donor; EBADF says that the
// donor is not bound any more. Whether frames are copied, and may have
// many buffers, the donor decided.
func tryShared(to target, donor int) (*socket, error) {
	s, err := newSocket(to.size)
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

// newSocket opens a socket and sets the sizes of its rings.
func newSocket(size int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	s := &socket{fd: fd}
	for _, option := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, option, size); err != nil {
			s.close()
			return nil, fmt.Errorf("rings of %d: %w", size, err)
		}
	}
	// One sendto sends 32 frames unless the kernel lets us raise that (Linux
	// 6.17 and later); kick goes round for older ones.
	_ = unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, size)
	return s, nil
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
	s.tx, err = mapRing[unix.XDPDesc](s.fd, unix.XDP_PGOFF_TX_RING, at.Tx, size)
	return err
}

func (s *socket) bind(to target, address unix.SockaddrXDP) error {
	address.Ifindex, address.QueueID = uint32(to.index), uint32(to.queue)
	if err := unix.Bind(s.fd, &address); err != nil {
		return fmt.Errorf("bind to queue %d: %w", to.queue, err)
	}
	return nil
}

// busyPoll has calls on the socket drive the card's queue.
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

// drive has the kernel ask the card for frames.
func (s *socket) drive() {
	_, _, _ = unix.Recvfrom(s.fd, nil, unix.MSG_DONTWAIT) // it asks, whatever it returns
}

// zeroCopy says whether the kernel moves frames without copying them.
func (s *socket) zeroCopy() bool {
	var options uint32
	return getsockopt(s.fd, unix.XDP_OPTIONS, &options) == nil && options&unix.XDP_OPTIONS_ZEROCOPY != 0
}

// kick makes the kernel send what is in the TX ring. What it could not send
// for the moment (no memory, device queue full) stays there for the next
// kick. It returns the error of a link that is down (ENETDOWN) or gone (ENXIO,
// EBADF), and nil otherwise.
func (s *socket) kick() error {
	if !s.busy && !s.tx.needsWakeup() {
		return nil
	}
	for left := s.tx.pending(); left > 0; {
		err := unix.Sendto(s.fd, nil, unix.MSG_DONTWAIT, nil)
		switch {
		case err == nil, errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN),
			errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOBUFS):
		default:
			return err
		}
		now := s.tx.pending()
		if now >= left { // no progress: come again next round
			return nil
		}
		left = now
	}
	return nil
}

// wakeReceiver makes a kernel that ran out of frames look at the fill ring
// again. Only drivers that receive without a copy ask for it.
func (s *socket) wakeReceiver(scratch []unix.PollFd) {
	if s.fill.needsWakeup() {
		scratch[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
		_, _ = unix.Poll(scratch[:1], 0) // poll(2) wakes it, whatever it returns
	}
}

// close ends the socket; the kernel lets go of all frames.
func (s *socket) close() error {
	err := unix.Close(s.fd)
	for _, memory := range [][]byte{s.fill.memory, s.done.memory, s.rx.memory, s.tx.memory} {
		if memory != nil {
			err = errors.Join(err, unix.Munmap(memory))
		}
	}
	return err
}
