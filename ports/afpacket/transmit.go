package afpacket

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// messageSize is a message's frames and bytes.
type messageSize struct{ frames, bytes int }

// leastDatagrams is the least number of datagrams that leave as one frame. A UDP socket gets each
// separately in any case, but a packet socket of the pod sees the one frame. So datagrams stay
// separate, except in runs as dense as those of one sending call (UDP_SEGMENT, udp(7)).
const leastDatagrams = 16

// Transmit sends the frames with one system call per maxBatch. Consecutive TCP segments leave as
// one frame, as the kernel's own receive offload would form it. So do leastDatagrams datagrams or
// more. Transmit returns how many frames the kernel accepted.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.tx.Lock()
	sent, bytes := 0, 0
	for rest := batch; len(rest) > 0; {
		n := min(len(rest), maxBatch)
		k, b := p.transmit(rest[:n])
		sent, bytes, rest = sent+k, bytes+b, rest[n:]
	}
	p.tx.Unlock()
	p.count.Sent(sent, bytes)
	packet.Release(batch)
	return sent
}

// transmit sends up to maxBatch frames and returns how many, and their bytes.
func (p *Port) transmit(batch []*packet.Frame) (sent, bytes int) {
	if p.closed {
		p.count.DropFrames(ports.TxClosed, batch...)
		return 0, 0
	}
	if p.link.Down() {
		p.count.DropFrames(ports.TxLinkDown, batch...)
		return 0, 0
	}
	p.tx.out.clear()
	n := 0
	for len(batch) > 0 {
		if why := ports.Refusal(batch[0], p.info.MTU, p.info.Carries); why != ports.None {
			p.count.DropFrames(why, batch[0])
			batch = batch[1:]
			continue
		}
		run := batch[:p.coalesce(batch)]
		batch = batch[len(run):]
		step := len(run)
		if p.tx.coalesced.Proto() == packet.ProtoUDP && step < leastDatagrams {
			step = 1
		}
		for ; len(run) > 0; run = run[step:] {
			p.post(n, run[:step])
			n++
		}
	}
	return p.send(n)
}

// coalesce is how many of the first frames are one run of segments or datagrams.
//
// Drivers without offload state, such as AF_XDP, deliver a stream segment by segment. The
// kernel's path of a frame costs about a microsecond, whatever the length, and a pod answers each
// unexpected frame. One call of another pod can send a thousand segments of 48 bytes, or a
// hundred datagrams. Sent one by one, they kept the worker busy until the tunnel's port lost the
// packets of others.
func (p *Port) coalesce(batch []*packet.Frame) int {
	if len(batch) < 2 || !batch[0].Offload.None() || !batch[1].Offload.None() {
		return 1
	}
	c, n := &p.tx.coalesced, 1
	c.Start(batch[0].Bytes())
	for n < len(batch) && batch[n].Offload.None() && c.Add(batch[n].Bytes()) {
		n++
	}
	return n
}

// post sets message i to a frame, or to a run of segments.
func (p *Port) post(i int, run []*packet.Frame) {
	f, size := run[0], messageSize{frames: len(run)}
	for _, g := range run {
		size.bytes += g.Len()
	}
	p.tx.sizes[i] = size
	var rest [][]byte
	if len(run) > 1 {
		f.Offload = p.tx.coalesced.Undone()
	}
	ports.PutVirtio(p.tx.out.header(i), f) // reads the headers before they are joined
	if len(run) > 1 {
		rest = p.tx.coalesced.JoinInPlace()
	}
	p.tx.out.gather(i, f.Bytes(), rest)
}

// send sends the first n messages. sendmmsg stops at a message that fails, and returns its error
// only if that is the first one left. send counts this message and skips it.
func (p *Port) send(n int) (sent, bytes int) {
	for at := 0; at < n; {
		k, err := p.tx.out.send(p.fd, at, n)
		for _, size := range p.tx.sizes[at : at+k] {
			sent, bytes = sent+size.frames, bytes+size.bytes
		}
		at += k
		if err != nil && err != unix.EINTR {
			p.count.CountDrop(reasonOf(err), p.tx.sizes[at].frames)
			b := p.tx.out.buffer(at)
			p.count.Keep(reasonOf(err).String(), netip.Addr{}, b, len(b))
			at++
		}
	}
	return sent, bytes
}

// reasonOf is why the kernel did not send a frame.
func reasonOf(err error) ports.Reason {
	switch err {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return ports.TxRingFull
	case unix.ENETDOWN, unix.ENXIO, unix.ENODEV:
		return ports.TxLinkDown
	case unix.EMSGSIZE:
		return ports.TxTooLong
	}
	return ports.TxFailed
}

// Flush does nothing, because Transmit has sent every frame.
func (p *Port) Flush() {}
