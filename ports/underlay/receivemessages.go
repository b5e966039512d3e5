package underlay

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// maxMessages is how many messages one system call moves, each way: half a second-level cache of
// full ones.
const maxMessages = 32

// inbox is the messages of one recvmmsg(2), until all are returned. A message is one datagram, or
// several if the kernel has joined datagrams of one sender. All have one size except the last,
// which may be shorter.
type inbox struct {
	*received
	room []*packet.Frame // message i is in the buffer of room[i]
	at   netip.Addr      // the address to which they came
	got  int             // messages
	next int             // the first message that has not begun
	left int             // remaining datagrams of the message before that

	rest []byte        // their bytes
	size int           // of each except the last
	cuts int           // bytes of each datagram inside, if a pod left its packet to be cut
	from packet.Tunnel // the outer header of that message, without the ID
	node sender        // its sender, as known when the message began

	first bool   // first holds the next datagram that has passed all checks
	inner []byte // its inner frame
	id    uint64 // … and virtual network
	trace uint64 // the id of its walk, 0 for none
	// options are the kept options. If they equal those of the previous datagram, its text is
	// reused, so a run of packets allocates once.
	options packet.TunnelOptions

	packets, bytes int // returned, but not counted yet
}

// newInbox makes an inbox with room for maxMessages of the longest messages. Room that no message
// has used takes no memory.
func newInbox() (*inbox, error) {
	pool, err := ports.LargePool(maxMessages)
	if err != nil {
		return nil, err
	}
	in := &inbox{received: newReceived(), room: make([]*packet.Frame, maxMessages)}
	pool.Get(in.room)
	for i, f := range in.room {
		in.setBuffer(i, f.Buffer())
	}
	return in, nil
}

// fill reads messages from a receiving socket. The inbox must be empty.
func (in *inbox) fill(r *receiver) error {
	in.at, in.next = r.at, 0
	var err error
	in.got, err = in.receive(r.fd)
	if err == unix.EAGAIN || err == unix.EINTR {
		return nil
	}
	return err
}

// clear discards the remaining datagrams.
func (in *inbox) clear() { in.left, in.next, in.got, in.first = 0, 0, 0, false }

// cut is the next datagram of the current message. There is at least one.
func (in *inbox) cut() []byte {
	n := min(in.size, len(in.rest))
	d := in.rest[:n]
	in.rest = in.rest[n:]
	in.left--
	return d
}

// datagramsOf is how many datagrams the kernel reports for a message of n bytes, and the length
// of each except the last. Without a valid report, the message is one datagram.
func datagramsOf(n, size int) (datagrams, each int) {
	if size <= 0 || size >= n {
		return 1, n
	}
	return (n + size - 1) / size, size
}

// peek prepares the next datagram that passes all checks in p.in. It returns false if none is
// left.
func (p *Port) peek() bool {
	for !p.in.first {
		if p.in.left == 0 && !p.beginMessage() {
			return false
		}
		datagram := p.in.cut()
		if inner, vni, options, ok := p.unwrap(datagram, &p.in.node, longest); ok {
			p.in.first, p.in.inner, p.in.id, p.in.trace = true, inner, uint64(vni), p.config.Kind.Trace(datagram)
			if string(options) != string(p.in.options) {
				p.in.options = packet.TunnelOptions(options)
			}
		}
	}
	return true
}

// open removes the tunnel's header from a datagram. options are those that frames keep.
func (p *Port) open(datagram []byte) (inner []byte, vni uint32, options tunnel.Options, why tunnel.Reason) {
	if p.config.Options {
		return p.config.Kind.UnwrapOptions(datagram)
	}
	inner, vni, why = p.config.Kind.Unwrap(datagram)
	return inner, vni, nil, why
}

// unwrap is the inner frame of a datagram, at most longest bytes, with its virtual network and
// the kept options. If a check fails, unwrap counts the datagram, and ok is false.
func (p *Port) unwrap(datagram []byte, from *sender, longest int) (inner []byte, vni uint32, options tunnel.Options, ok bool) {
	inner, vni, options, why := p.open(datagram)
	if why == tunnel.None && vni != p.config.Network && !p.config.AnyNetwork {
		why = tunnel.Network
	}
	switch {
	case why != tunnel.None:
		p.count.refuse(why, from.address, datagram)
	case len(inner) > longest:
		p.count.CountDrop(ports.RxTooLong, 1)
	case !from.maySend(inner):
		p.count.refuseForeign(from.address, datagram)
	default:
		return inner, vni, options, true
	}
	return nil, 0, nil, false
}

// beginMessage begins the next message that is whole and from a known Node. It returns false if
// none is left.
func (p *Port) beginMessage() bool {
	peers := p.peers.Load()
	for in := p.in; in.next < in.got; {
		i := in.next
		in.next++
		n, truncated := in.messageSize(i)
		datagrams, each := datagramsOf(n, in.segmentSize(i))
		src := in.source(i)
		from, known := peers.sender(src)
		if !known {
			p.count.refuseSource(src, in.room[i].Buffer()[:min(n, ports.DropSampleLen)], n, datagrams)
			continue
		}
		if truncated {
			p.count.CountDrop(ports.RxTooLong, datagrams)
			continue
		}
		in.rest, in.left, in.size = in.room[i].Buffer()[:n], datagrams, each
		if p.isRaw() && src.Is4() {
			in.rest = behindIPv4(in.rest)
		}
		in.cuts = 0
		if datagrams > 1 && p.isOnePacket(in.rest) {
			in.left, in.size, in.cuts = 1, n, each
		}
		in.from, in.node = packet.Tunnel{Src: src, Dst: in.at}, from
		return true
	}
	return false
}

// takeDatagram is the datagram that peek has found. The next peek finds the following one.
func (p *Port) takeDatagram() []byte {
	p.in.first = false
	p.in.packets++
	p.in.bytes += len(p.in.inner)
	return p.in.inner
}
