package underlay

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is the kernel's struct mmsghdr. Go pads it to the alignment of its pointers, as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// call is recvmmsg(2) or sendmmsg(2) of at least one message.
func call(number uintptr, fd int, hdrs []mmsghdr) (int, error) {
	k, _, errno := unix.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&hdrs[0])),
		uintptr(len(hdrs)), unix.MSG_DONTWAIT, 0, 0)
	runtime.KeepAlive(hdrs)
	if errno != 0 {
		return 0, errno
	}
	return int(k), nil
}

// received is the arguments of recvmmsg for maxMessages, allocated once: message
// i has one buffer, an address and a control message. Buffers, here and in
// outbox, are memory that Go does not move; the iovecs keep them alive.
type received struct {
	hdrs     [maxMessages]mmsghdr
	iovs     [maxMessages]unix.Iovec
	addrs    [maxMessages]unix.RawSockaddrInet6 // large enough for either family
	controls [maxMessages]gsoControl
}

// gsoControl is a control message UDP_GRO: an int, the size of a datagram.
type gsoControl struct {
	hdr  unix.Cmsghdr
	size int32
	_    int32
}

func newReceived() *received {
	m := new(received)
	for i := range m.hdrs {
		h := &m.hdrs[i].hdr
		h.Iov = &m.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&m.addrs[i]))
		h.Control = (*byte)(unsafe.Pointer(&m.controls[i]))
	}
	return m
}

// setBuffer sets the buffer of message i. b is not empty.
func (m *received) setBuffer(i int, b []byte) {
	m.iovs[i].Base = &b[0]
	m.iovs[i].SetLen(len(b))
}

// receive fills in messages and returns how many; EAGAIN if there is none.
func (m *received) receive(fd int) (int, error) {
	for i := range m.hdrs {
		m.hdrs[i].hdr.Namelen = unix.SizeofSockaddrInet6
		m.hdrs[i].hdr.SetControllen(int(unsafe.Sizeof(m.controls[i])))
		m.addrs[i].Family = unix.AF_UNSPEC
	}
	return call(unix.SYS_RECVMMSG, fd, m.hdrs[:])
}

// source is the sender of received message i; the zero Addr if the kernel did not report it.
func (m *received) source(i int) netip.Addr {
	switch a := &m.addrs[i]; a.Family {
	case unix.AF_INET:
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(a)).Addr)
	case unix.AF_INET6:
		return netip.AddrFrom16(a.Addr)
	}
	return netip.Addr{}
}

// messageSize is the length of received message i, and whether its buffer was
// too short for it.
func (m *received) messageSize(i int) (n int, truncated bool) {
	return int(m.hdrs[i].len), m.hdrs[i].hdr.Flags&unix.MSG_TRUNC != 0
}

// segmentSize is the size of the datagrams in message i, as the kernel reports it; 0 without a
// report.
func (m *received) segmentSize(i int) int {
	c := &m.controls[i]
	if int(m.hdrs[i].hdr.Controllen) < int(unsafe.Offsetof(c.size)+unsafe.Sizeof(c.size)) ||
		c.hdr.Level != unix.SOL_UDP || c.hdr.Type != unix.UDP_GRO {
		return 0
	}
	return int(c.size)
}

// cutControl is a control message UDP_SEGMENT: the size of each datagram.
type cutControl struct {
	hdr  unix.Cmsghdr
	size uint16
	_    [6]byte
}

// sent is the arguments of sendmmsg for maxMessages, allocated once. Message i has an
// address, parts of its own in iovs, and perhaps a control message.
type sent struct {
	hdrs     [maxMessages]mmsghdr
	iovs     [maxParts]unix.Iovec
	addrs    [maxMessages]unix.RawSockaddrInet6
	controls [maxMessages]cutControl
}

func newSent() *sent {
	m := new(sent)
	for i := range m.hdrs {
		m.hdrs[i].hdr.Name = (*byte)(unsafe.Pointer(&m.addrs[i]))
		c := &m.controls[i].hdr
		c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		c.SetLen(int(unsafe.Offsetof(m.controls[i].size) + unsafe.Sizeof(m.controls[i].size)))
	}
	return m
}

// setPart sets part j. b is not empty.
func (m *sent) setPart(j int, b []byte) {
	m.iovs[j].Base = &b[0]
	m.iovs[j].SetLen(len(b))
}

// part is part j.
func (m *sent) part(j int) []byte { return unsafe.Slice(m.iovs[j].Base, m.iovs[j].Len) }

// setParts sets message i to n parts, beginning with first. The kernel cuts it into datagrams of
// size bytes; 0 means one datagram.
func (m *sent) setParts(i, first, n, size int) {
	h := &m.hdrs[i].hdr
	h.Iov = &m.iovs[first]
	h.SetIovlen(n)
	h.Control = nil
	h.SetControllen(0)
	if size > 0 {
		m.controls[i].size = uint16(size)
		h.Control = (*byte)(unsafe.Pointer(&m.controls[i]))
		h.SetControllen(int(unsafe.Sizeof(m.controls[i])))
	}
}

// setDestination sets the destination of message i.
func (m *sent) setDestination(i int, dst netip.AddrPort) {
	h := &m.hdrs[i].hdr
	port := [2]byte{byte(dst.Port() >> 8), byte(dst.Port())}
	if dst.Addr().Is4() {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&m.addrs[i])) = unix.RawSockaddrInet4{
			Family: unix.AF_INET, Port: binary.NativeEndian.Uint16(port[:]), Addr: dst.Addr().As4()}
		h.Namelen = unix.SizeofSockaddrInet4
		return
	}
	m.addrs[i] = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: binary.NativeEndian.Uint16(port[:]), Addr: dst.Addr().As16()}
	h.Namelen = unix.SizeofSockaddrInet6
}

// send sends messages from to n-1 and returns how many were sent. The error is that of the first
// one; then none was sent.
func (m *sent) send(fd, from, n int) (int, error) { return call(unix.SYS_SENDMMSG, fd, m.hdrs[from:n]) }

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
