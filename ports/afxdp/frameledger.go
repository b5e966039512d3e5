package afxdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Layout numbers the layout that is shared with another process: a UMEM's frames, and a port's
// ledger. A process with another layout opens the port again.
const Layout = 1

// ledger is what another process must know to take over a port, in its own piece of memory. It is
// a page with facts and a journal, followed by one bit for each frame that the kernel has. Frames
// to receive into and frames to send have separate bits.
type ledger struct {
	fd       int
	memory   []byte
	facts    facts
	journal  journal
	received held
	sent     held
}

// facts are constant while a port is open.
type facts struct {
	Layout      uint32
	FrameSize   uint32
	Frames      uint32 // number of frames in the UMEM
	Requests    uint32 // bytes in front of a sent frame
	Interface   uint32 // index
	Queue       uint32
	Ring        uint32 // slots of each ring
	Mode        uint32 // index in modes
	MultiBuffer uint32 // 1: frames may have many buffers
	Apart       uint32 // 1: another socket sends
}

// modes are the modes in which a port can be open. Their indexes are part of the layout.
var modes = []Mode{Native, Generic, ZeroCopy}

// ledgerSize is the size of a ledger for a number of frames, in bytes.
func ledgerSize(frames int) int { return os.Getpagesize() + 2*8*words(frames) }

// newLedger is a ledger for a port on a UMEM with a number of frames.
func newLedger(frames int) (*ledger, error) {
	fd, memory, err := newShared("antrail-port", ledgerSize(frames))
	if err != nil {
		return nil, err
	}
	return (&ledger{fd: fd, memory: memory}).divided(frames), nil
}

// openLedger maps the ledger of another process. If it fails, the caller still owns the
// descriptor.
func openLedger(fd int) (*ledger, error) {
	memory, err := mapShared(fd)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &ledger{fd: fd, memory: memory}
	if len(memory) >= os.Getpagesize() {
		_, err = binary.Decode(memory, binary.NativeEndian, &l.facts)
	}
	switch f := &l.facts; {
	case err != nil:
	case f.Layout != Layout:
		err = fmt.Errorf("its layout is %d, expected %d", f.Layout, Layout)
	case f.FrameSize != FrameSize:
		err = fmt.Errorf("its frames have %d bytes, expected %d", f.FrameSize, FrameSize)
	case len(memory) != ledgerSize(int(f.Frames)):
		err = fmt.Errorf("%d bytes for %d frames", len(memory), f.Frames)
	case int(f.Mode) >= len(modes):
		err = fmt.Errorf("mode %d", f.Mode)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ledger: %w", err), unix.Munmap(memory))
	}
	return l.divided(int(l.facts.Frames)), nil
}

// divided sets the places of the bits for a number of frames.
func (l *ledger) divided(frames int) *ledger {
	bits := heldIn(l.memory[os.Getpagesize():])
	n := words(frames)
	l.journal, l.received, l.sent = journalIn(l.memory), bits[:n:n], bits[n:]
	return l
}

// write writes the facts to the memory.
func (l *ledger) write(f facts) error {
	l.facts = f
	_, err := binary.Encode(l.memory, binary.NativeEndian, &f)
	return err
}

// close unmaps the ledger. The caller must not use the frames any more.
func (l *ledger) close() error {
	l.journal, l.received, l.sent = nil, nil, nil
	return errors.Join(unix.Munmap(l.memory), unix.Close(l.fd))
}

// factsOf are the facts of a port.
func (p *Port) factsOf(index int, o *Options, mode Mode) facts {
	return facts{
		Layout: Layout, FrameSize: FrameSize, Frames: uint32(p.umem.Frames()), Requests: uint32(p.umem.requests),
		Interface: uint32(index), Queue: uint32(o.Queue), Ring: uint32(o.Ring), Mode: uint32(slices.Index(modes, mode)),
		MultiBuffer: number(p.umem.multiBuffer), Apart: number(o.apart(mode)),
	}
}

func number(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}
