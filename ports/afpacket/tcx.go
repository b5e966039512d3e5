package afpacket

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/internal/nsthread"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A tcx program is attached without a bpf_link, so that it outlives a process that is
// killed. To take one off, or to attach the first, the kernel waits until no packet runs
// on any processor (synchronize_rcu). That takes 12 ms and more, for one link at a time.
// To put one in the place of another it waits for nobody.

// tcx is a program at tc ingress of a link.
type tcx struct {
	ns    netns.NsHandle // the link's
	index int
	prog  *ebpf.Program // nil before Update
	stays bool          // another process has it
}

// openTCX is the hook of a link of the calling thread's network namespace; nothing is
// attached yet.
func openTCX(index int) (*tcx, error) {
	ns, err := netns.Get()
	if err != nil {
		return nil, err
	}
	return &tcx{ns: ns, index: index}, nil
}

// takeTCX attaches a program.
func takeTCX(index int, prog *ebpf.Program) (*tcx, error) {
	x, err := openTCX(index)
	if err != nil {
		return nil, err
	}
	if err := x.put(prog); err != nil {
		return nil, errors.Join(err, x.ns.Close())
	}
	return x, nil
}

// Update puts a program in the place of the one before.
func (x *tcx) Update(prog *ebpf.Program) error {
	return nsthread.In(x.ns, func() error { return x.put(prog) })
}

// put attaches a program in the place of a port's that is there, whoever attached it,
// or before all others.
func (x *tcx) put(prog *ebpf.Program) error {
	had, err := programsAt(x.index)
	if err != nil {
		return err
	}
	defer closePrograms(had)
	where := link.Head()
	if len(had) > 0 {
		where = link.ReplaceProgram(had[0])
	}
	err = link.RawAttachProgram(link.RawAttachProgramOptions{Target: x.index, Program: prog, Attach: ebpf.AttachTCXIngress, Anchor: where})
	if err == nil {
		x.prog = prog
	}
	return err
}

// keepProgram has the program stay when the port is closed.
func (x *tcx) keepProgram() { x.stays = true }

// Close takes the program off the link, unless another is in its place.
func (x *tcx) Close() error {
	defer x.ns.Close()
	if x.stays || x.prog == nil {
		return nil
	}
	return nsthread.In(x.ns, func() error { return takeOff(x.index, x.prog) })
}

func takeOff(index int, prog *ebpf.Program) error {
	return gone(link.RawDetachProgram(link.RawDetachProgramOptions{Target: index, Program: prog, Attach: ebpf.AttachTCXIngress}))
}

// programsAt are the programs of ports at a link of the calling thread's network
// namespace. Whoever may not look at others' programs, for it lacks CAP_SYS_ADMIN,
// sees none.
func programsAt(index int) (all []*ebpf.Program, err error) {
	there, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return nil, err
	}
	for _, a := range there.Programs {
		p, err := ebpf.NewProgramFromID(a.ID)
		if err != nil {
			continue
		}
		if i, err := p.Info(); err == nil && i.Name == filterName {
			all = append(all, p)
		} else {
			p.Close()
		}
	}
	return all, nil
}

func closePrograms(all []*ebpf.Program) {
	for _, p := range all {
		p.Close()
	}
}

// cleanTCX removes what ports of a process that was killed have left at a link.
func cleanTCX(index int) (removed bool, err error) {
	left, err := programsAt(index)
	if err != nil {
		return false, ignoreOlder(err)
	}
	defer closePrograms(left)
	for _, p := range left {
		if err := takeOff(index, p); err != nil {
			return removed, fmt.Errorf("program %s: %w", filterName, err)
		}
		removed = true
	}
	return removed, nil
}

// ignoreOlder makes no error of a kernel without tcx, and of a link that is gone.
func ignoreOlder(err error) error {
	if isOlder(err) {
		return nil
	}
	return gone(err)
}

// isOlder says whether it is an error of a kernel without tcx.
func isOlder(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported)
}
