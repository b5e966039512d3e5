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

// Another process takes a port over with its sockets, the memory of its frames and its program's
// bpf_link.
//
//  1. The other process maps the same memory and the same rings, and waits. An older kernel than
//     Linux 6.4 cannot map the rings of a bound socket.
//  2. It begins after the predecessor has stopped moving packets. Then the words of the rings say
//     where to continue, and the ledgers of all ports say which frames the kernel has.
//  3. All other frames are free, wherever they were in the predecessor. From then on the
//     predecessor must neither read nor write any frame.
//  4. The program is the other process's own. Until it replaces the earlier one, that one leads
//     to the same sockets. So no frame goes to the Node's stack in between. The kernel takes 6 to
//     20 ms for replacing, so frames move before.

// Descriptors is how many descriptors a port has. A given port with a filter has one more.
const Descriptors = 5

// Descriptors are the memory of the frames, the ledger, the program's link, and the sockets that
// receive and send. The two sockets may be the same. A given port adds the map of its filter's
// addresses.
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

// Rest ends receiving. It reads only the remaining buffers of a frame that has begun. Transmitted
// frames still leave.
func (p *Port) Rest() {
	p.umem.open.Lock()
	p.umem.shared = true
	p.umem.open.Unlock()
	p.rx.Lock()
	defer p.rx.Unlock()
	p.rests = true
}

// given is the parts of a port that its descriptors contain.
type given struct {
	memory, in, out int // in and out are the same if one socket does both
	ledger          *ledger
	link            link.Link
	locals          *ebpf.Map // of a given port with a filter
}

// receive takes ownership of the descriptors, also if it fails.
func receive(o *Options, fds []int) (g *given, err error) {
	want := Descriptors
	if o.Attached && o.Filter != nil {
		want++
	}
	if len(fds) != want {
		ports.CloseAll(fds)
		return nil, fmt.Errorf("%d descriptors, want %d", len(fds), want)
	}
	g = &given{memory: fds[0], in: fds[3], out: fds[4]}
	if g.ledger, err = openLedger(fds[1]); err != nil {
		ports.CloseAll(fds)
		return nil, err
	}
	if g.ledger.facts.Apart == 0 {
		ports.CloseAll(fds[4:5])
		g.out = g.in
	}
	if g.link, err = link.NewFromFD(fds[2]); err != nil { // NewFromFD has closed it
		err = fmt.Errorf("link of the program: %w", err)
		ports.CloseAll(fds[Descriptors:])
	} else if want > Descriptors {
		err = g.takeLocals(fds[Descriptors])
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *given) close() error {
	ports.CloseAll([]int{g.memory, g.in})
	if g.out != g.in {
		ports.CloseAll([]int{g.out})
	}
	err := errors.Join(g.ledger.close(), g.locals.Close())
	if g.link != nil {
		err = errors.Join(err, g.link.Close())
	}
	return err
}

// Adopt makes a port of an interface from another port's descriptors. It owns them from then on,
// also after an error. Before the port moves frames, the caller must call BeginTraffic of this
// port and of all others of the same memory. After that it calls Relink.
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

// suits completes the options, and returns the interface. The error says how the port differs
// from what the options ask for.
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
	if o.Attached { // the other process has chosen the mode
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

// holding is the UMEM over a port's memory. The first port makes it.
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

// drop frees memory that no port has joined.
func (m *Memory) drop(u *UMEM) error {
	if !u.isShared() || u.Ports() > 0 {
		return nil
	}
	m.umems = slices.DeleteFunc(m.umems, func(one *UMEM) bool { return one == u })
	return errors.Join(unix.Munmap(u.memory), unix.Close(u.fd))
}

// addPort adds a port to those that begin together.
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

// join maps the rings and makes the program, which waits for BeginTraffic. If it fails, the
// caller still owns what was given.
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
	if p.info.Why = o.Why; !o.Attached { // otherwise o.Why is complete, from the other process
		p.info.Why = "taken over as it was"
		p.explain(o.Why)
	}
	return nil
}

// BeginTraffic starts moving frames in this process. The predecessor has stopped.
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

// Relink replaces the predecessor's program by this process's own. The caller may call it while
// frames move. Until then, addresses of SetLocal have no effect.
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

// freeRest frees the frames that no port has, once.
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

// closeShared closes this process's part of a port that another process also has. The ledger of a
// port that has not begun still marks the frames that the others must not use.
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
