package tap

import (
	"errors"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Receive reads one frame after another until there is none, or no frame to read into. In the
// latter case the kernel keeps a few hundred frames, and drops and counts more.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed || p.gone || p.rests {
		return 0
	}
	n, bytes := 0, 0
	for n < len(batch) {
		f := p.read()
		if f == nil {
			break
		}
		batch[n] = f
		n++
		bytes += f.Len()
	}
	p.count.Received(n, bytes)
	return n
}

// read is the next frame from the host; nil if there is none.
func (p *Port) read() *packet.Frame {
	f := p.empty()
	if f == nil {
		return nil
	}
	const start = packet.Headroom - ports.VirtioLen
	n, err := unix.Read(p.fd, f.Buffer()[start:])
	if err == nil && f.SetBounds(packet.Headroom, n-ports.VirtioLen) && ports.ReadVirtio(f, f.Buffer()[start:]) {
		p.rx.spare = p.rx.spare[:len(p.rx.spare)-1]
		if p.marks {
			showMark(f, &p.info.MAC)
		}
		return f
	}
	switch {
	case err == nil:
		p.count.CountDrop(ports.RxOffload, 1)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
	case errors.Is(err, unix.EBADFD), errors.Is(err, unix.ENODEV):
		p.gone = true // deleted from outside
		p.link.Gone()
	default:
		p.count.CountDrop(ports.RxFailed, 1)
	}
	return nil
}

// empty is the next frame to read into. It stays a spare frame until it is filled.
func (p *Port) empty() *packet.Frame {
	if len(p.rx.spare) == 0 {
		n := p.pool.Get(p.rx.spare[:cap(p.rx.spare)])
		p.rx.spare = p.rx.spare[:n]
	}
	if len(p.rx.spare) == 0 {
		return nil
	}
	return p.rx.spare[len(p.rx.spare)-1]
}

// Transmit writes the frames to the host, each at once.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.tx.Lock()
	defer p.tx.Unlock()
	return p.count.TransmitEach(batch, p.write)
}

// write sends one frame, or returns why not.
func (p *Port) write(f *packet.Frame) ports.Reason {
	if p.closed {
		return ports.TxClosed
	}
	if why := ports.Refusal(f, p.info.MTU, p.info.Carries); why != ports.None {
		return why
	}
	if p.marks {
		hideMark(f)
	}
	ports.PutVirtio(p.header[:], f)
	parts := [][]byte{p.header[:], f.Bytes()}
	_, err := unix.Writev(p.fd, parts)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Writev(p.fd, parts)
	}
	switch {
	case err == nil:
		return ports.None
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		return ports.TxRingFull
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EBADFD), errors.Is(err, unix.ENODEV):
		return ports.TxLinkDown
	}
	return ports.TxFailed
}

// Flush does nothing, because Transmit has written every frame.
func (p *Port) Flush() {}
