package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// Transmit wraps the frames for their Tunnel.Dst and sends them, all that can
// be sent with one system call per maxBatch frames. It returns how many the
// kernel took.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.txMu.Lock()
	sent, bytes := 0, 0
	for rest := batch; len(rest) > 0; {
		n := min(len(rest), maxBatch)
		k, b := p.transmit(rest[:n])
		sent, bytes, rest = sent+k, bytes+b, rest[n:]
	}
	p.txMu.Unlock()
	p.count.Sent(sent, bytes)
	packet.Release(batch)
	return sent
}

// transmit sends up to maxBatch frames and returns how many, and their inner
// bytes.
func (p *Port) transmit(batch []*packet.Frame) (sent, bytes int) {
	if p.closed {
		p.count.Lost(ports.TxClosed, len(batch))
		return 0, 0
	}
	n := 0
	for _, f := range batch {
		if !p.wrap(f) {
			continue
		}
		p.tx.setBuffer(n, f.Bytes())
		p.tx.setDestination(n, f.Tunnel.Dst)
		n++
	}
	return p.send(n)
}

// wrap checks and encapsulates one frame.
func (p *Port) wrap(f *packet.Frame) bool {
	if why := ports.Refusal(f, p.config.MTU, 0); why != ports.None {
		p.count.Lost(why, 1)
		return false
	}
	f.Tunnel.Dst = f.Tunnel.Dst.Unmap()
	if !f.Tunnel.Dst.IsValid() {
		p.count.lost(txNoNode)
		return false
	}
	if !p.sendsTo(f.Tunnel.Dst) {
		p.count.lost(txUnknownNode)
		return false
	}
	f.Tunnel.Src = p.config.Local
	if why := tunnel.Encap(f); why != tunnel.None {
		p.count.refused(why)
		return false
	}
	return true
}

// send hands the first n messages to the kernel. sendmmsg stops at a message
// that fails, and says why only when that is the first one left; it is then
// counted and stepped over.
func (p *Port) send(n int) (sent, bytes int) {
	for at := 0; at < n; {
		k, err := p.tx.send(p.txFD, at, n)
		for i := at; i < at+k; i++ {
			sent, bytes = sent+1, bytes+p.tx.length(i)-tunnel.Overhead
		}
		at += k
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			p.count.Lost(ports.TxRingFull, n-at)
			return sent, bytes
		case unix.EMSGSIZE:
			p.count.Lost(ports.TxTooLong, 1)
			at++
		case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN:
			p.count.lost(txNoRoute)
			at++
		default:
			p.count.Lost(ports.TxFailed, 1)
			at++
		}
	}
	return sent, bytes
}
