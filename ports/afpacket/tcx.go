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

// A tcx program is attached without a bpf_link, so that it survives if its process is killed. To
// detach a program, or to attach the first, the kernel waits until no packet runs on any
// processor (synchronize_rcu). That takes 12 ms and more, for one link at a time. Replacing a
// program waits for nothing.

// tcx is a program at tc ingress of a link.
type tcx struct {
	ns    netns.NsHandle // the link's
	index int
	prog  *ebpf.Program // nil before Update
	stays bool          // another process uses it
}

// openTCX is the hook of a link of the calling thread's network namespace. Nothing is attached
// yet.
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

// Update replaces the program.
func (x *tcx) Update(prog *ebpf.Program) error {
	return nsthread.In(x.ns, func() error { return x.put(prog) })
}

// put attaches a program. It replaces a port's present program, whichever process attached it. If
// there is none, the program goes before all others.
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

// keepProgram keeps the program attached when the port is closed.
func (x *tcx) keepProgram() { x.stays = true }

// Close detaches the program, unless another one has replaced it.
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

// programsAt are the programs of ports at a link of the calling thread's network namespace. A
// process without CAP_SYS_ADMIN may not read others' programs, so it gets none.
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

// cleanTCX removes the programs that ports of a killed process have left at a link.
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

// ignoreOlder returns nil for errors of a kernel without tcx, and of a link that is gone.
func ignoreOlder(err error) error {
	if isOlder(err) {
		return nil
	}
	return gone(err)
}

// isOlder says whether an error means that the kernel has no tcx.
func isOlder(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported)
}
