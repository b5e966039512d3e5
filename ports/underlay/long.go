package underlay

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// A datagram may be too long for its way, because the underlay's MTU was lowered or a router
// reported a smaller one. The kernel stores routers' reports, and refuses longer datagrams. If
// the inner packet must not be fragmented, it is dropped, and Longs reports its sender. Other
// datagrams go out by a separate socket without the DF bit. The kernel fragments the outer
// packet, and the other Node's kernel reassembles it. RFC 8926, section 4.4.1, leaves that to the
// tunnel's ends. These packets may be fragmented:
//
//	IPv4 without the DF bit                   a router would fragment it
//	IPv4 up to 576 bytes, IPv6 up to 1280     no answer would make it shorter
//	not IP                                    its sender would not understand an answer
//
// Few packets go this way, with a system call for each.

// The longest packets that every way carries: the length that every host accepts (RFC 791,
// section 3.1), and the least MTU (RFC 8200, section 5).
const (
	leastMTU4 = 576
	leastMTU6 = 1280
)

// maxLongs is how many packets wait in Longs; others are not reported.
const maxLongs = 64

// Long is an inner frame that was dropped because it was too long.
type Long struct {
	Frame []byte
	Node  netip.Addr // its destination
}

// Longs are the frames that were too long, one of each message. The caller need not receive them:
// frames without room are discarded at no cost. The channel is never closed.
func (p *Port) Longs() <-chan Long { return p.longs }

// PathMTU is the longest inner IP packet for a Node, as far as the kernel knows the way there.
// Any goroutine may call it.
func (p *Port) PathMTU(node netip.Addr) int {
	mtu, ok := p.seenMTU(node)
	if !ok {
		return p.config.MTU
	}
	return min(p.config.MTU, mtu-p.config.Kind.Overhead(node.Is6()))
}

// seenMTU is the longest outer IP packet that a socket may send to a Node. It returns false if
// none may be sent.
func (p *Port) seenMTU(node netip.Addr) (int, bool) {
	p.askMu.Lock()
	defer p.askMu.Unlock()
	_, sa := sockaddr(netip.AddrPortFrom(node, p.config.Kind.Port()))
	if node.Is4() != p.config.Local.Is4() || unix.Connect(p.asker, sa) != nil {
		return 0, false
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if node.Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(p.asker, level, option)
	return mtu, err == nil
}

func (p *Port) openLong() (err error) {
	if p.noDF, err = openSender(p.config.Kind, p.config.Local, false); err != nil {
		return err
	}
	if p.asker, err = openSender(p.config.Kind, p.config.Local, true); err != nil {
		unix.Close(p.noDF)
	}
	return err
}

func (p *Port) closeLong() error {
	p.askMu.Lock()
	defer p.askMu.Unlock()
	err := errors.Join(unix.Close(p.noDF), unix.Close(p.asker))
	p.noDF, p.asker = -1, -1
	return err
}

// tooLong handles a datagram of message i that is too long for its way. The datagram begins with
// part first, and frames frames begin in it. If tell is set, the message has not been reported
// yet.
func (p *lane) tooLong(i, first, frames int, tell bool) {
	o := p.out
	options := o.gsoMessages[i].options
	head, body := o.part(first)[tunnel.HeaderLen+options:], o.part(first+1)
	if fragmentable(head, body) {
		o.setParts(i, first, 2, 0)
		if _, err := o.sent.send(p.noDF, i, i+1); err == nil {
			o.countSent(frames, 1, o.datagramLen(first), options)
			return
		}
	}
	seen := head // has all headers, or is empty
	if len(seen) == 0 {
		seen = body
	}
	p.count.unsent(ports.TxTooLong, o.gsoMessages[i].to, seen, len(head)+len(body))
	if tell {
		p.report(o.gsoMessages[i].to, head, body)
	}
}

// fragmentable says whether the outer packet of an inner frame may be fragmented. Either head has
// the frame's headers, or body has the whole frame.
func fragmentable(head, body []byte) bool {
	n := len(head) + len(body) - packet.EthernetLen
	b := head
	if len(b) == 0 {
		b = body
	}
	ip := b[packet.EthernetLen:]
	switch packet.Ethernet(b).Type() {
	case packet.EtherTypeIPv4:
		return n <= leastMTU4 || len(ip) >= packet.IPv4Len && packet.IPv4(ip).FlagsOffset()&packet.IPv4DontFragment == 0
	case packet.EtherTypeIPv6:
		return n <= leastMTU6
	}
	return true
}

// report reports a frame, which is in two parts, if there is room. It copies the frame only then.
func (p *Port) report(node netip.Addr, head, body []byte) {
	if len(p.longs) < cap(p.longs) {
		select {
		case p.longs <- Long{slices.Concat(head, body), node}:
		default: // another lane has used the room
		}
	}
}
