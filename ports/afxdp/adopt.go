package afxdp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A port goes on in another process with its sockets, the memory of its frames and its
// program's bpf_link. The other process maps the same memory and the same rings (Linux
// 6.4), and waits. An older kernel does not map those of a bound socket. Its turn is when
// the process before moves no packet any more. Then the words of the rings say where to
// go on, and the ledgers of all ports which frames the kernel has. All others are free,
// wherever they were in the process before, which must neither read nor write any from
// then on.
//
// The program is the other process's own. Until it replaces the earlier one, that one
// leads to the same sockets. No frame goes to the Node's stack in between. The kernel
// takes 6 to 20 ms for that, so frames move before.

// Descriptors is how many a port has. One that is given and has a filter has one more.
const Descriptors = 5

// Descriptors are the memory of the frames, the ledger, the program's link, and the
// sockets that receive and send. The two may be the same. Of a port that is given the map
// of a filter's addresses follows.
func (p *Port) Descriptors() []int {
	p.rx.Lock()
	defer p.rx.Unlock()
	l, is := p.program.link.(interface{ FD() int })
	if p.closed || !is {
		return nil
	}
	fds := []int{p.umem.fd, p.ledger.fd, l.FD(), p.socket.fd, p.socket.out}
	if p.given && p.program.locals != nil {
		fds = append(fds, p.program.locals.FD())
	}
	return fds
}

// Rest ends receiving: of what waits in the RX ring only a frame is read that has
// begun. What is transmitted leaves.
func (p *Port) Rest() {
	p.umem.open.Lock()
	p.umem.shared = true
	p.umem.open.Unlock()
	p.rx.Lock()
	defer p.rx.Unlock()
	p.rests = true
}

// given is what a port is made of, out of its descriptors.
type given struct {
	memory, in, out int // in and out are the same when one socket does both
	ledger          *ledger
	link            link.Link
	locals          *ebpf.Map // of a port that is given, with a filter
}

// receive takes descriptors, also when it fails.
func receive(o *Options, fds []int) (g *given, err error) {
	want := Descriptors
	if o.Attached && o.Filter != nil {
		want++
	}
	if len(fds) != want {
		closeAll(fds)
		return nil, fmt.Errorf("%d descriptors, want %d", len(fds), want)
	}
	g = &given{memory: fds[0], in: fds[3], out: fds[4]}
	if g.ledger, err = openLedger(fds[1]); err != nil {
		closeAll(fds)
		return nil, err
	}
	if g.ledger.facts.Apart == 0 {
		closeAll(fds[4:5])
		g.out = g.in
	}
	if g.link, err = link.NewFromFD(fds[2]); err != nil { // it has closed it
		err = fmt.Errorf("link of the program: %w", err)
		closeAll(fds[Descriptors:])
	} else if want > Descriptors {
		err = g.takeLocals(fds[Descriptors])
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *given) close() error {
	closeAll([]int{g.memory, g.in})
	if g.out != g.in {
		closeAll([]int{g.out})
	}
	err := g.ledger.close()
	if g.link != nil {
		err = errors.Join(err, g.link.Close())
	}
	if g.locals != nil {
		err = errors.Join(err, g.locals.Close())
	}
	return err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// Adopt makes a port of an interface from another one's descriptors, which are its own
// from then on, also after an error. Before the port moves frames, BeginTraffic has to be
// called, of this port and all others of the same memory, and then Relink.
func (m *Memory) Adopt(o Options, fds []int) (*Port, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.Ring = m.ring
	g, err := receive(&o, fds)
	var p *Port
	if err == nil {
		p, err = m.adopt(o, g)
	}
	if err != nil {
		return nil, fmt.Errorf("afxdp: %s: taken over: %w", o.Interface, err)
	}
	return p, nil
}

func (m *Memory) adopt(o Options, g *given) (p *Port, err error) {
	nic, err := g.suits(&o)
	var state *ports.Link
	if err == nil {
		state, err = ports.WatchLink(o.Interface, nic.Attrs().Index)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	u, err := m.holding(g)
	if err == nil {
		u.alone = u.alone || o.Attached
		p = newPort(u, o.Interface, nic, g.ledger, state)
		p.theirs, p.given, p.killed = true, o.Attached, o.Killed
		p.program, p.socket = &program{link: g.link, locals: g.locals}, &socket{fd: g.in, out: g.out}
		if err = u.addPort(p, o); err == nil {
			return p, unix.Close(g.memory)
		}
		err = errors.Join(err, m.drop(u))
	}
	return nil, errors.Join(err, g.close(), state.Close())
}

// suits says why a port is not what the options ask for, and completes them. It
// returns the interface.
func (g *given) suits(o *Options) (netlink.Link, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	nic, err := netlink.LinkByName(o.Interface)
	if err != nil {
		return nil, err
	}
	if err := suits(*o); err != nil {
		return nil, err
	}
	at, err := g.link.Info()
	if err != nil {
		return nil, err
	}
	f, mode := &g.ledger.facts, modes[g.ledger.facts.Mode]
	if o.Attached { // the other process has chosen
		o.Mode, o.Ring = mode, int(f.Ring)
		if err := o.complete(); err != nil {
			return nil, err
		}
	}
	switch index := uint32(nic.Attrs().Index); {
	case f.Interface != index || at.XDP() == nil || at.XDP().Ifindex != index:
		return nil, errors.New("it is of another interface")
	case f.Queue != uint32(o.Queue):
		return nil, fmt.Errorf("it is of queue %d", f.Queue)
	case f.Ring != uint32(o.Ring):
		return nil, fmt.Errorf("its rings have %d slots, and here they have %d", f.Ring, o.Ring)
	case o.Mode != Auto && o.Mode != mode:
		return nil, fmt.Errorf("it is %s, and to be %s", mode, o.Mode)
	case !o.Attached && f.Apart != number(o.apart(mode)):
		return nil, errors.New("it polls otherwise than asked for")
	}
	return nic, nil
}

// holding is the UMEM whose memory a port has; it is made when the port is the first.
func (m *Memory) holding(g *given) (*UMEM, error) {
	for _, u := range m.umems {
		if sameFile(u.fd, g.memory) {
			return u, nil
		}
	}
	fd, err := unix.FcntlInt(uintptr(g.memory), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	memory, err := mapShared(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("UMEM: %w", err), unix.Close(fd))
	}
	u, err := newUMEM(fd, memory, g.ledger.facts.MultiBuffer != 0)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	u.requests, u.shared = int(g.ledger.facts.Requests), true
	m.umems = append(m.umems, u)
	return u, nil
}

// drop gives memory back that no port has joined.
func (m *Memory) drop(u *UMEM) error {
	if !u.isShared() || u.Ports() > 0 {
		return nil
	}
	m.umems = slices.DeleteFunc(m.umems, func(one *UMEM) bool { return one == u })
	return errors.Join(unix.Munmap(u.memory), unix.Close(u.fd))
}

// addPort has a port join the others, to begin with them.
func (u *UMEM) addPort(p *Port, o Options) error {
	u.open.Lock()
	defer u.open.Unlock()
	switch f := &p.ledger.facts; {
	case u.closed:
		return errClosed
	case !u.shared:
		return errors.New("the other ports of its memory have begun")
	case int(f.Frames) != u.Frames() || int(f.Requests) != u.requests || f.MultiBuffer != number(u.multiBuffer):
		return errors.New("it has other frames than its memory")
	}
	if err := p.join(o); err != nil {
		return err
	}
	u.sockets, u.adopted = append(u.sockets, p.socket.fd), append(u.adopted, p)
	return nil
}

// join maps the rings and makes the program, which waits for BeginTraffic. When it fails, what
// was given stays the caller's.
func (p *Port) join(o Options) error {
	f := &p.ledger.facts
	mode := modes[f.Mode]
	multiBuffer := p.umem.multiBuffer && mode != ZeroCopy
	err := p.holds(multiBuffer)
	if err == nil {
		err = p.socket.mapRings(int(f.Ring))
	}
	if err == nil && !o.Attached {
		err = p.program.load(o.Queue, multiBuffer, o.Filter.within(p.info.MTU, mode))
	}
	if err == nil && !o.Attached {
		err = p.program.serve(o.Queue, p.socket.fd)
	}
	if err == nil {
		err = p.settle(o, mode, multiBuffer)
	}
	if err != nil {
		return errors.Join(err, p.program.unload(), p.socket.unmap())
	}
	if p.info.Why = o.Why; !o.Attached { // the other process has said the rest
		p.info.Why = "taken over as it was"
		p.explain(o.Why)
	}
	return nil
}

// BeginTraffic has this process move frames: the process before does not any more.
func (p *Port) BeginTraffic() error {
	if err := p.beginTraffic(); err != nil {
		return fmt.Errorf("afxdp: %s: %w", p.name, err)
	}
	return nil
}

func (p *Port) beginTraffic() error {
	if p.killed {
		p.reconcile()
		p.killed = false
	}
	if err := p.umem.freeRest(); err != nil {
		return err
	}
	p.rx.Lock()
	defer p.rx.Unlock()
	p.tx.Lock()
	defer p.tx.Unlock()
	if p.closed {
		return nil
	}
	s := p.socket
	s.fill.resume(true)
	s.rx.resume(false)
	s.tx.resume(true)
	s.done.resume(false)
	p.beginJournal()
	p.rx.stock.out = p.rx.held.count()
	p.tx.outstanding = p.tx.held.count()
	p.theirs = false
	p.before, _ = s.stats()
	p.refill()
	p.flush()
	return nil
}

// Relink puts this process's program in the place of that of the process before, and may
// be called when frames move. Until then addresses that SetLocal gives are not heeded.
func (p *Port) Relink() error {
	p.rx.Lock()
	program, closed := p.program, p.closed
	p.rx.Unlock()
	if closed || program.prog == nil { // Attached: the program stays
		return nil
	}
	err := program.link.Update(program.prog)
	if err == nil || errors.Is(err, unix.ENOLINK) { // the interface may be gone
		return nil
	}
	return fmt.Errorf("afxdp: %s: XDP program: %w", p.name, err)
}

// freeRest makes the frames free that no port has, once.
func (u *UMEM) freeRest() error {
	u.open.Lock()
	defer u.open.Unlock()
	if !u.shared {
		return nil
	}
	all, apart := newHeld(len(u.frames)), true
	for _, p := range u.adopted {
		apart = all.join(p.ledger.received) && apart
		apart = all.join(p.ledger.sent) && apart
	}
	if !apart {
		return errors.New("a frame is in two places")
	}
	u.setFree(all)
	u.shared, u.adopted = false, nil
	return nil
}

// closeShared closes what this process has of a port that another one has, too. The ledger
// of one that has not begun says what the others must not take.
func (p *Port) closeShared() error {
	err := errors.Join(p.program.close(), p.socket.close())
	if p.theirs {
		return err
	}
	err = errors.Join(err, p.ledger.close())
	if p.umem.idle {
		err = errors.Join(err, p.umem.abandon())
	}
	return err
}
