package afxdp

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Mode is where the XDP program runs, and whether frames are copied.
type Mode string

// The modes of Options.
const (
	// Auto is Native, or Generic if the kernel refuses that; Info.Why says why.
	Auto Mode = "auto"
	// Native runs the program in the driver, before the kernel makes an skb;
	// frames are copied into the UMEM.
	Native Mode = "native"
	// Generic runs it on skbs, with any driver; frames are copied.
	Generic Mode = "generic"
	// ZeroCopy is Native with a card that receives into the UMEM itself. Then only ports of such
	// cards can share the UMEM, so Auto never chooses it.
	ZeroCopy Mode = "zero-copy"
)

// DefaultRing is the slots of each of a port's rings. A port that copies has at most as many
// frames to receive into, so its memory is 2 MB.
const DefaultRing = 512

// Options says which interface to open, and how.
type Options struct {
	// Interface is a name in the calling thread's network namespace.
	Interface string
	// Queue is the receive queue to serve; other queues are not served.
	Queue int
	// Filter selects the packets that the port takes; nil takes all.
	Filter *Filter
	// Mode is Auto when empty.
	Mode Mode
	// Why is the reason for AF_XDP, which Info shows before the reason for the mode. If it is
	// empty, Info shows only the latter.
	Why string
	// Ring is the slots of each ring, a power of two, at least 64; DefaultRing if 0.
	Ring int
	// BusyPoll makes the worker's own calls drive the card's queue, instead of interrupts. The
	// zero value leaves it to interrupts.
	BusyPoll BusyPoll
	// Attached says that another process has opened the port (OpenToGive) and attached its
	// program. Adopt then needs no capability and keeps mode, rings and polling, and Relink does
	// nothing. Open ignores it.
	Attached bool
	// Killed says that the predecessor was killed, and may not have called Rest. Then Adopt finds
	// the frames that the kernel has (killed.go). It is for memory of one port.
	Killed bool
}

// BusyPoll is how a worker drives a card's queue itself (Linux,
// Documentation/networking/napi.rst, "Busy polling"). It is for cards whose worker has its own
// processor. The card's napi_defer_hard_irqs and gro_flush_timeout decide how long its interrupts
// then stay off. On a veth it does nothing.
type BusyPoll struct {
	// Time is how long a call may poll the card, in whole microseconds (SO_BUSY_POLL); 0 for no
	// busy polling.
	Time time.Duration
	// Budget is the largest number of frames that a call takes from the card
	// (SO_BUSY_POLL_BUDGET), 1 to 65535; 0 is the kernel's own, 8.
	Budget int
}

func (b BusyPoll) check() error {
	switch {
	case b.Time < 0 || b.Time%time.Microsecond != 0 || b.Time > time.Second:
		return fmt.Errorf("busy polling of %v: want whole microseconds, a second at most", b.Time)
	case b.Budget < 0 || b.Budget > 65535:
		return fmt.Errorf("busy polling with a budget of %d frames: want 1 to 65535", b.Budget)
	case b.Time == 0 && b.Budget != 0:
		return errors.New("busy polling has a budget and no time")
	}
	return nil
}

// Open makes a port of an interface, which must be in the calling thread's network namespace. Any
// thread may then use the port. It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. From then on,
// every frame that the interface receives goes to the port. The kernel's own stack gets only the
// packets that a filter leaves to it.
func Open(u *UMEM, o Options) (*Port, error) {
	p, err := open(u, o)
	if err != nil {
		return nil, fmt.Errorf("afxdp: %s: %w", o.Interface, err)
	}
	return p, nil
}

func open(u *UMEM, o Options) (*Port, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	nic, err := netlink.LinkByName(o.Interface)
	if err != nil {
		return nil, err
	}
	if err := suits(o); err != nil {
		return nil, err
	}
	state, err := ports.WatchLink(o.Interface, nic.Attrs().Index)
	if err != nil {
		return nil, err
	}
	l, err := newLedger(u.Frames())
	if err != nil {
		return nil, errors.Join(err, state.Close())
	}
	p := newPort(u, o.Interface, nic, l, state)
	u.open.Lock()
	defer u.open.Unlock()
	if u.closed {
		err = errClosed
	} else {
		err = p.openMode(nic.Attrs().Index, o)
	}
	if err != nil {
		return nil, errors.Join(err, l.close(), state.Close())
	}
	p.explain(o.Why)
	return p, nil
}

// explain completes Why: the reason for AF_XDP, if there is one, then that for the mode, then the
// treatment of checksums and long frames.
func (p *Port) explain(why string) {
	p.info.Why += "; " + p.checksums() + p.lengths()
	if why != "" {
		p.info.Why = why + "; " + p.info.Why
	}
}

func (o *Options) complete() error {
	o.Mode, o.Ring = cmp.Or(o.Mode, Auto), cmp.Or(o.Ring, DefaultRing)
	switch o.Mode {
	case Auto, Native, Generic, ZeroCopy:
	default:
		return fmt.Errorf("mode %q: want auto, native, generic or zero-copy", o.Mode)
	}
	if err := o.BusyPoll.check(); err != nil {
		return err
	}
	if o.Ring < portion || o.Ring&(o.Ring-1) != 0 {
		return fmt.Errorf("rings of %d slots: want a power of two, at least %d", o.Ring, portion)
	}
	return nil
}

// suits returns an error if a link cannot be an AF_XDP port.
func suits(o Options) error {
	queues, err := ports.RxQueues(o.Interface)
	if err != nil {
		return err
	}
	if queues > 1 {
		return fmt.Errorf("%d receive queues, and a port serves one: ethtool -L %s combined 1 (or rx 1)", queues, o.Interface)
	}
	if o.Queue < 0 || o.Queue >= queues {
		return fmt.Errorf("queue %d of %d", o.Queue, queues)
	}
	return nil
}

// openMode opens the port in the requested mode, or in the first mode of Auto that works, and
// fills its fill ring. The caller holds u.open.
func (p *Port) openMode(index int, o Options) error {
	if o.Mode != Auto {
		if err := p.start(index, o, o.Mode); err != nil {
			return fmt.Errorf("%s: %w", o.Mode, err)
		}
		p.info.Why = "asked for"
		return nil
	}
	native := p.start(index, o, Native)
	if native == nil {
		p.info.Why = "the driver runs XDP programs; zero-copy has to be asked for"
		return nil
	}
	if err := p.start(index, o, Generic); err != nil {
		return fmt.Errorf("native: %w; generic: %w", native, err)
	}
	p.info.Why = "not native: " + native.Error()
	return nil
}

// start attaches the program, binds the socket and connects the two. In this order no frame
// reaches a socket without buffers.
func (p *Port) start(index int, o Options, mode Mode) error {
	multiBuffer := p.umem.multiBuffer && mode != ZeroCopy
	if err := p.holds(multiBuffer); err != nil {
		return err
	}
	attachFlags, bindFlags := flagsOf(mode, multiBuffer)
	prog, err := attach(index, o.Queue, attachFlags, multiBuffer, o.Filter.within(p.info.MTU, mode))
	if err != nil {
		return err
	}
	s, err := openSocket(p.umem, target{index: index, queue: o.Queue, flags: bindFlags, size: o.Ring, apart: o.apart(mode)})
	if err != nil {
		return errors.Join(err, prog.close())
	}
	p.program, p.socket = prog, s
	err = p.settle(o, mode, multiBuffer)
	if err == nil {
		err = p.ledger.write(p.factsOf(index, &o, mode))
	}
	if err != nil {
		return errors.Join(err, p.stop())
	}
	p.umem.sockets = append(p.umem.sockets, s.fd)
	p.refill()
	if err := prog.serve(o.Queue, s.fd); err != nil {
		p.umem.sockets = p.umem.sockets[:len(p.umem.sockets)-1]
		return errors.Join(err, p.stop())
	}
	return nil
}

// apart says whether one socket receives and another sends. Busy polling for both directions
// needs one socket.
func (o *Options) apart(mode Mode) bool { return mode != ZeroCopy && o.BusyPoll.Time == 0 }

// flagsOf are the flags to attach the program with, and to bind the socket.
func flagsOf(mode Mode, multiBuffer bool) (attach link.XDPAttachFlags, bind uint16) {
	attach, bind = link.XDPDriverMode, unix.XDP_COPY
	switch mode {
	case Generic:
		attach = link.XDPGenericMode
	case ZeroCopy:
		bind = unix.XDP_ZEROCOPY
	}
	if multiBuffer {
		bind |= unix.XDP_USE_SG
	}
	return attach, bind
}

// holds returns an error if the link's frames are too long for a port with, or without,
// multi-buffer frames.
func (p *Port) holds(multiBuffer bool) error {
	switch mtu := p.info.MTU; {
	case multiBuffer && mtu > multiBufferMTU:
		return fmt.Errorf("MTU %d: frames of an MTU up to %d are gathered", mtu, multiBufferMTU)
	case !multiBuffer && mtu > oneBufferMTU:
		return fmt.Errorf("MTU %d: one buffer holds frames of an MTU up to %d, and more than one %s", mtu, oneBufferMTU, p.unchained())
	}
	return nil
}

// unchained is why a frame of this port has only one buffer.
func (p *Port) unchained() string {
	if !p.umem.multiBuffer {
		return "takes Linux 6.6"
	}
	return "is not for zero-copy"
}

// settle records the properties of the bound socket, which the UMEM's first port has determined.
func (p *Port) settle(o Options, mode Mode, multiBuffer bool) error {
	s := p.socket
	if o.Attached {
		s.busy = s.polls()
	} else if err := s.busyPoll(o.BusyPoll); err != nil {
		return err
	}
	p.info.Mode = describe(mode, s.zeroCopy())
	p.generic = mode == Generic
	p.silent = p.generic || p.veth
	p.rx.stock = newStock(o.Ring, !s.zeroCopy())
	p.tx.requests = p.umem.requests
	if p.info.Carries = 0; p.umem.requests > 0 && p.veth {
		p.info.Carries = ports.CarriesChecksum
	}
	if mode == ZeroCopy && !s.zeroCopy() {
		return errors.New("the UMEM is shared with a port that copies")
	}
	p.multiBuffer = multiBuffer && !s.zeroCopy()
	return p.holds(p.multiBuffer)
}

// lengths is the reason if frames are limited to one buffer.
func (p *Port) lengths() string {
	if p.multiBuffer {
		return ""
	}
	return fmt.Sprintf("; frames of one buffer: more than one %s", p.unchained())
}

// checksums says how the port treats partial checksums.
func (p *Port) checksums() string {
	switch {
	case p.info.Carries != 0:
		return "partial checksums leave as they came"
	case p.umem.requests == 0:
		return "checksums are completed: the kernel takes none that are partial"
	}
	return "checksums are completed: a card's driver may send one that is partial as it is"
}

// describe is Info.Mode: where the program runs, and whether frames are copied.
func describe(mode Mode, zeroCopy bool) string {
	where := "native"
	if mode == Generic {
		where = "generic"
	}
	if zeroCopy {
		return where + ", zero-copy"
	}
	return where + ", copy"
}
