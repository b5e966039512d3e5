package underlay

import (
	"math/bits"
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

const (
	// maxDatagrams is how many datagrams the kernel cuts a message into: 64, and 128
	// since Linux 6.9.
	maxDatagrams = 64
	// maxBytes is the longest message: 64 kB less the headers of IPv6 and UDP.
	maxBytes = 65535 - packet.IPv6Len - packet.UDPLen
	// maxParts is how many parts the messages of one system call have together.
	maxParts = 1024
	// headsLen is the bytes for headers of the messages of one system call, and
	// more than the longest inner frame has.
	headsLen = 128 << 10
)

// outbox is messages that one socket sends with one sendmmsg(2). Each datagram is two parts: its
// headers, which lie here, and the rest, which stays in the frame. Datagrams of one size to one
// Node are one message, which the kernel or the card cuts (UDP_SEGMENT). So the message is routed
// and filtered once.
type outbox struct {
	*sent
	port        uint16 // of the other Node; 0 without UDP
	gsoMessages [maxMessages]gsoMessage
	n           int // messages
	parts       int
	heads       []byte
	used        int // of heads

	whole        bool // the kernel does not cut: each datagram is a message
	takesOptions bool // the tunnel's header has a place for options

	frames, datagrams, bytes int // sent, but not counted yet
}

// gsoMessage is one message of an outbox.
type gsoMessage struct {
	to        netip.Addr
	size      int // of each datagram except the last
	bytes     int
	datagrams int
	begins    uint64 // in which of them a frame begins, as bits
	first     int    // its first part
	parts     int
	ended     bool // nothing can follow its last datagram
	walkID    int  // bytes of the walk id in its only head, which may be omitted
	options   int  // bytes of options in each head, which may not be omitted
}

func newOutbox(kind tunnel.Kind) *outbox {
	return &outbox{sent: newSent(), port: kind.Port(), heads: make([]byte, headsLen), whole: kind.Port() == 0, takesOptions: kind == tunnel.KindGeneve}
}

// full says that there may be no room for one more datagram with this head.
func (o *outbox) full(head int) bool {
	return o.n == maxMessages || o.parts+2 > maxParts || o.used+head > len(o.heads)
}

// head is the place for the next datagram's headers.
func (o *outbox) head(n int) []byte {
	h := o.heads[o.used : o.used+n]
	o.used += n
	return h
}

// put adds a datagram of a frame. frames is 1 if the frame begins with it, otherwise 0. The
// outbox must not be full.
func (o *outbox) put(f *packet.Frame, head, body []byte, frames int) {
	n, options := len(head)+len(body), o.optionsOf(f)
	if !o.follows(f.Tunnel.Dst, n, options) {
		o.gsoMessages[o.n] = gsoMessage{to: f.Tunnel.Dst, size: n, first: o.parts, ended: o.whole, options: options}
		o.n++
	}
	t := &o.gsoMessages[o.n-1]
	o.setPart(o.parts, head)
	o.setPart(o.parts+1, body)
	o.parts += 2
	t.parts += 2
	t.bytes += n
	t.begins |= uint64(frames) << t.datagrams
	t.datagrams++
	t.ended = t.ended || n < t.size || t.datagrams == maxDatagrams
}

// frames is how many begin in a message.
func (t *gsoMessage) frames() int { return bits.OnesCount64(t.begins) }

// beginsAt is 1 if a frame begins in a datagram of a message, otherwise 0.
func (t *gsoMessage) beginsAt(datagram int) int { return int(t.begins >> datagram & 1) }

// optionsOf is the length of a frame's options in bytes.
func (o *outbox) optionsOf(f *packet.Frame) int {
	if !o.takesOptions {
		return 0
	}
	return len(f.Tunnel.Options)
}

// follows says whether a datagram of n bytes, with options bytes of options, can follow the last
// one in its message.
func (o *outbox) follows(to netip.Addr, n, options int) bool {
	if o.n == 0 {
		return false
	}
	t := &o.gsoMessages[o.n-1]
	return !t.ended && t.to == to && t.options == options && n <= t.size && t.bytes+n <= maxBytes
}

// address sets the destination of message i.
func (o *outbox) address(i int) {
	t := &o.gsoMessages[i]
	o.setDestination(i, netip.AddrPortFrom(t.to, o.port))
	size := 0
	if t.datagrams > 1 {
		size = t.size
	}
	o.setParts(i, t.first, t.parts, size)
}

// countSent counts a message, or a datagram of it, as sent. Each has options bytes of options.
func (o *outbox) countSent(frames, datagrams, bytes, options int) {
	o.frames += frames
	o.datagrams += datagrams
	o.bytes += bytes - datagrams*(tunnel.HeaderLen+options)
}

// clear removes all messages.
func (o *outbox) clear() { o.n, o.parts, o.used = 0, 0, 0 }

// send sends all messages. sendmmsg stops at a message that fails, and returns its error only if
// that is the first one left. send counts this message and skips it.
func (p *lane) send(fd int) {
	o := p.out
	for i := range o.n {
		o.address(i)
	}
	for at := 0; at < o.n; {
		k, err := o.sent.send(fd, at, o.n)
		for i := at; i < at+k; i++ {
			p.took(i)
		}
		at += k
		if err == nil || err == unix.EINTR {
			continue
		}
		p.fail(fd, at, err)
		at++
	}
	o.clear()
}

// took counts message i, which the kernel accepted, as sent. If the Node does not answer, it
// counts the message as dropped.
func (p *lane) took(i int) {
	o := p.out
	t := &o.gsoMessages[i]
	if _, silent := (*p.silent.Load())[t.to]; !silent {
		o.countSent(t.frames(), t.datagrams, t.bytes-t.walkID, t.options)
		return
	}
	p.count.countDrop(ports.TxSilent, t.datagrams)
	p.keep(ports.TxSilent.String(), i, t.first)
}

// keep keeps the frame in the datagram of message i that begins with a part. It is the sample for
// a drop reason.
func (p *lane) keep(reason string, i, first int) {
	t := &p.out.gsoMessages[i]
	head, body := p.out.part(first), p.out.part(first+1)
	head = head[tunnel.HeaderLen+t.walkID+t.options:]
	var inner [ports.DropSampleLen]byte
	n := copy(inner[:], head)
	n += copy(inner[n:], body)
	p.count.Keep(reason, t.to, inner[:n], len(head)+len(body))
}

// fail handles message i, which the kernel refused.
func (p *lane) fail(fd, i int, err error) {
	t := &p.out.gsoMessages[i]
	switch {
	case t.walkID > 0 && err == unix.EMSGSIZE:
		p.withoutID(fd, i)
	case t.datagrams > 1 && (err == unix.EIO || err == unix.EINVAL || err == unix.EMSGSIZE):
		p.apart(fd, i)
	case err == unix.EMSGSIZE:
		p.tooLong(i, t.first, t.frames(), true)
	default:
		p.lose(err, i, t.first, t.datagrams)
	}
}

// apart sends the datagrams of a message separately. Some of them may be too long for their way
// (EINVAL before Linux 6.14). If none is, the kernel cannot cut them: a route may encrypt, or,
// before Linux 6.11, a card may compute no checksums. From then on all messages have one
// datagram.
func (p *lane) apart(fd, i int) {
	o := p.out
	t := &o.gsoMessages[i]
	long := false
	for n := range t.datagrams {
		first, frames := t.first+2*n, t.beginsAt(n)
		o.setParts(i, first, 2, 0)
		switch _, err := o.sent.send(fd, i, i+1); err {
		case nil:
			o.countSent(frames, 1, o.datagramLen(first), t.options)
		case unix.EMSGSIZE:
			p.tooLong(i, first, frames, !long)
			long = true
		default:
			p.lose(err, i, first, 1)
		}
	}
	o.whole = o.whole || !long
}

// datagramLen is the length of the datagram that begins with a part, in bytes.
func (o *outbox) datagramLen(first int) int { return len(o.part(first)) + len(o.part(first+1)) }

// lose counts datagrams of message i that the kernel refused, the first of which begins with a
// part. That one is kept, because its inner frame shows which pod sent it.
func (p *lane) lose(err error, i, first, datagrams int) {
	why := ports.TxFailed
	switch err {
	case unix.EAGAIN, unix.ENOBUFS:
		why = ports.TxRingFull
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN:
		p.count.countDrop(ports.TxNoRoute, datagrams)
		p.keep(ports.TxNoRoute.String(), i, first)
		return
	}
	p.count.CountDrop(why, datagrams)
	p.keep(why.String(), i, first)
}
