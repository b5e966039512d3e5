package afpacket

import (
	"runtime"
	"unsafe"

	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// mmsghdr is the kernel's struct mmsghdr. Go pads it to the alignment of its pointers, as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// auxdata is struct tpacket_auxdata of linux/if_packet.h.
type auxdata struct {
	status, length, snaplen uint32
	mac, net, tci, tpid     uint16
}

// control is a control message with auxdata, at its largest.
type control struct {
	hdr  unix.Cmsghdr
	data auxdata
	_    [4]byte
}

// messages is the arguments of recvmmsg and sendmmsg for maxBatch frames, allocated once. Message
// i has a virtio-net header, a buffer and, to receive, a control message. A message to send may
// have more buffers, from several frames. The buffers are ordinary Go memory; the iovecs keep
// them alive, and Go does not move them.
type messages struct {
	hdrs     [maxBatch]mmsghdr
	iovs     [2 * maxBatch]unix.Iovec
	used     int // of iovs, by gather
	virtio   [maxBatch][ports.VirtioLen]byte
	controls [maxBatch]control
}

func newMessages() *messages {
	m := new(messages)
	for i := range m.hdrs {
		at := m.iovs[2*i:]
		at[0].Base = &m.virtio[i][0]
		at[0].SetLen(ports.VirtioLen)
		m.hdrs[i].hdr.Iov = &at[0]
		m.hdrs[i].hdr.SetIovlen(2)
	}
	return m
}

// setBuffer sets the buffer for the frame of message i. b is not empty.
func (m *messages) setBuffer(i int, b []byte) {
	at := &m.iovs[2*i+1]
	at.Base = &b[0]
	at.SetLen(len(b))
}

// clear removes all messages to send.
func (m *messages) clear() { m.used = 0 }

// gather sets message i to its header and these bytes, none of which is empty. Messages come in
// order, after clear, and have at most maxBatch parts together.
func (m *messages) gather(i int, first []byte, rest [][]byte) {
	all := m.iovs[m.used : m.used+2+len(rest)]
	m.used += len(all)
	all[0].Base = &m.virtio[i][0]
	all[0].SetLen(ports.VirtioLen)
	all[1].Base = &first[0]
	all[1].SetLen(len(first))
	for n, b := range rest {
		all[2+n].Base = &b[0]
		all[2+n].SetLen(len(b))
	}
	m.hdrs[i].hdr.Iov = &all[0]
	m.hdrs[i].hdr.SetIovlen(len(all))
}

// buffer is the first bytes of message i, as set by gather.
func (m *messages) buffer(i int) []byte {
	first := unsafe.Slice(m.hdrs[i].hdr.Iov, 2)[1]
	return unsafe.Slice(first.Base, first.Len)
}

// header is the virtio-net header of message i.
func (m *messages) header(i int) []byte { return m.virtio[i][:] }

// size is the length of the frame of received message i, and whether its buffer was too short.
func (m *messages) size(i int) (n int, truncated bool) {
	return int(m.hdrs[i].len) - ports.VirtioLen, m.hdrs[i].hdr.Flags&unix.MSG_TRUNC != 0
}

// tag is the VLAN tag that the kernel removed from received message i; ok is false without one.
func (m *messages) tag(i int) (tpid, tci uint16, ok bool) {
	c := &m.controls[i]
	if int(m.hdrs[i].hdr.Controllen) < int(unsafe.Offsetof(c.data)+unsafe.Sizeof(c.data)) ||
		c.hdr.Level != unix.SOL_PACKET || c.hdr.Type != unix.PACKET_AUXDATA || c.data.status&unix.TP_STATUS_VLAN_VALID == 0 {
		return 0, 0, false
	}
	return c.data.tpid, c.data.tci, true
}

// receive fills in up to n messages and returns how many; EAGAIN if there is none.
func (m *messages) receive(fd, n int) (int, error) {
	for i := range m.hdrs[:n] {
		h := &m.hdrs[i].hdr
		h.Control = (*byte)(unsafe.Pointer(&m.controls[i]))
		h.SetControllen(int(unsafe.Sizeof(m.controls[i])))
	}
	return m.call(unix.SYS_RECVMMSG, fd, 0, n)
}

// send sends messages from to n-1 and returns how many were sent. The error is that of the first
// one; then none was sent.
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
