package afpacket

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Transmit sends the frames with one system call per maxBatch. It returns how
// many the kernel took.
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
	n := 0
	for _, f := range batch {
		if why := ports.Refusal(f, p.info.MTU, p.info.Carries); why != ports.None {
			p.count.DropFrames(why, f)
			continue
		}
		p.tx.out.setBuffer(n, f.Bytes())
		ports.PutVirtio(p.tx.out.header(n), f)
		n++
	}
	return p.send(n)
}

// send hands the first n messages to the kernel. sendmmsg stops at a message
// that fails, and says why only when that is the first one left; it is then
// counted and stepped over.
func (p *Port) send(n int) (sent, bytes int) {
	for at := 0; at < n; {
		k, err := p.tx.out.send(p.fd, at, n)
		for i := at; i < at+k; i++ {
			sent, bytes = sent+1, bytes+p.tx.out.length(i)
		}
		at += k
		if err != nil && err != unix.EINTR {
			p.count.CountDrop(reasonOf(err), 1)
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

// Flush has nothing to do: Transmit has sent every frame.
func (p *Port) Flush() {}
