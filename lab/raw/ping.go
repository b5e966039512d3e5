package raw

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The echo messages of the two families (RFC 792, RFC 4443): the raw socket's network, and
// the types.
var (
	echo4 = echoKind{"ip4:icmp", 8, 0}
	echo6 = echoKind{"ip6:ipv6-icmp", 128, 129}
)

type echoKind struct {
	network        string
	request, reply byte
}

// Pinger sends echo requests to one address and reads their replies. One
// goroutine may send while another receives.
type Pinger struct {
	*net.IPConn
	kind    echoKind
	to      netip.Addr
	id      uint16
	buf     []byte
	control []byte
}

// OpenPinger opens a pinger in the calling thread's namespace. Pingers of one
// namespace need different ids.
func OpenPinger(to netip.Addr, id uint16) (*Pinger, error) {
	p := &Pinger{kind: echo4, to: to, id: id, buf: make([]byte, 1500), control: make([]byte, 128)}
	if to.Is6() {
		p.kind = echo6
	}
	var err error
	if p.IPConn, err = net.ListenIP(p.kind.network, nil); err != nil {
		return nil, err
	}
	if err := Stamp(p.IPConn); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Send sends the request with a sequence number.
func (p *Pinger) Send(seq uint16) error {
	_, err := p.WriteTo(p.request(seq), &net.IPAddr{IP: p.to.AsSlice()})
	return err
}

// Receive returns the sequence number of the next reply, and the kernel's time of receipt.
func (p *Pinger) Receive() (seq uint16, at time.Time, err error) {
	for {
		n, m, _, from, err := p.ReadMsgIP(p.buf, p.control)
		if err != nil {
			return 0, time.Time{}, err
		}
		if seq, ok := p.reply(p.payload(p.buf[:n])); ok && from.IP.String() == p.to.String() {
			return seq, StampOf(p.control[:m]), nil
		}
	}
}

// payload is the ICMP message. ReadMsgIP leaves the IPv4 header in place. A raw IPv6 socket
// has no header.
func (p *Pinger) payload(b []byte) []byte {
	if p.kind == echo4 && len(b) > 0 {
		return b[min(len(b), int(b[0]&0xf)*4):]
	}
	return b
}

func (p *Pinger) reply(b []byte) (seq uint16, ok bool) {
	if len(b) < 8 || b[0] != p.kind.reply || binary.BigEndian.Uint16(b[4:]) != p.id {
		return 0, false
	}
	return binary.BigEndian.Uint16(b[6:]), true
}

// request is an ICMP message: type, code, checksum, identifier, sequence number and 56
// bytes of data. The kernel fills in the checksum of ICMPv6, which covers addresses, too
// (RFC 3542, section 3.1).
func (p *Pinger) request(seq uint16) []byte {
	b := make([]byte, 64)
	b[0] = p.kind.request
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], seq)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// Stamp makes the kernel time-stamp each packet that a socket receives.
func Stamp(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	return errors.Join(err, failed)
}

// StampOf is the kernel's time stamp in a packet's control messages; the current time if
// there is none.
func StampOf(control []byte) time.Time {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Now()
	}
	for _, m := range all {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Now()
}
