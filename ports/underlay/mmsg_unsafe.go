package underlay

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is the kernel's struct mmsghdr; Go pads it to the alignment of its
// pointers, as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// messages is the arguments of recvmmsg and sendmmsg for maxBatch datagrams,
// allocated once: message i has one buffer and one address. The buffers are
// ordinary Go memory; the iovecs keep them alive, and Go does not move them.
type messages struct {
	hdrs  [maxBatch]mmsghdr
	iovs  [maxBatch]unix.Iovec
	addrs [maxBatch]unix.RawSockaddrInet6 // large enough for either family
}

func newMessages() *messages {
	m := new(messages)
	for i := range m.hdrs {
		h := &m.hdrs[i].hdr
		h.Iov = &m.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&m.addrs[i]))
	}
	return m
}

// setBuffer says where message i is, or is to be put. b is not empty.
func (m *messages) setBuffer(i int, b []byte) {
	m.iovs[i].Base = &b[0]
	m.iovs[i].SetLen(len(b))
}

// length is the bytes of message i's buffer.
func (m *messages) length(i int) int { return int(m.iovs[i].Len) }

// setDestination says where message i goes. The port in the address is 0, as
// a raw socket wants it.
func (m *messages) setDestination(i int, dst netip.Addr) {
	h := &m.hdrs[i].hdr
	if dst.Is4() {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&m.addrs[i])) = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: dst.As4()}
		h.Namelen = unix.SizeofSockaddrInet4
		return
	}
	m.addrs[i] = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: dst.As16()}
	h.Namelen = unix.SizeofSockaddrInet6
}

// source is where received message i came from; the zero Addr when the kernel
// did not say.
func (m *messages) source(i int) netip.Addr {
	switch a := &m.addrs[i]; a.Family {
	case unix.AF_INET:
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(a)).Addr)
	case unix.AF_INET6:
		return netip.AddrFrom16(a.Addr)
	}
	return netip.Addr{}
}

// size is the length of received message i, and whether its buffer was too
// short for it.
func (m *messages) size(i int) (n int, truncated bool) {
	return int(m.hdrs[i].len), m.hdrs[i].hdr.Flags&unix.MSG_TRUNC != 0
}

// receive fills in up to n messages and returns how many; EAGAIN when there is
// none.
func (m *messages) receive(fd, n int) (int, error) {
	for i := range m.hdrs[:n] {
		m.hdrs[i].hdr.Namelen = unix.SizeofSockaddrInet6
		m.addrs[i].Family = unix.AF_UNSPEC
	}
	return m.call(unix.SYS_RECVMMSG, fd, 0, n)
}

// send sends messages from to n-1 and returns how many were sent. An error is
// that of the first one, and none was sent.
func (m *messages) send(fd, from, n int) (int, error) { return m.call(unix.SYS_SENDMMSG, fd, from, n) }

func (m *messages) call(number uintptr, fd, from, to int) (int, error) {
	k, _, errno := unix.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&m.hdrs[from])),
		uintptr(to-from), unix.MSG_DONTWAIT, 0, 0)
	runtime.KeepAlive(m)
	if errno != 0 {
		return 0, errno
	}
	return int(k), nil
}

// socketDrops is how many datagrams the kernel dropped at a socket because its
// buffer was full: the last of the 32-bit numbers that SO_MEMINFO gives.
func socketDrops(fd int) (uint32, error) {
	const skMeminfoDrops = 8
	var b [4 * (skMeminfoDrops + 1)]byte
	n := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&b)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return 0, errno
	}
	if int(n) < len(b) {
		return 0, unix.ENOPROTOOPT
	}
	return binary.NativeEndian.Uint32(b[4*skMeminfoDrops:]), nil
}
