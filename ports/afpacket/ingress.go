package afpacket

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ingress is a program at tc ingress of an interface that drops every frame, or
// every one that it was not asked to forward. The kernel shows a frame to packet
// sockets before, so the port gets them all, and the Node's own stack, which would
// answer ARP and forward, none. It is attached by a bpf_link, which the kernel
// removes when the process ends, however it ends; without tcx, see filter.go.
type ingress struct {
	prog *ebpf.Program // nil when it is somebody else's
	hook hook
}

// tcxDrop is TCX_DROP of enum tcx_action_base.
const tcxDrop = 2

// takeIngress attaches the program of the shortcuts; one that drops all when there is
// none.
func takeIngress(index int, o *Options) (*ingress, error) {
	prog := o.Shortcuts.Ingress
	var own *ebpf.Program
	if prog == nil {
		var err error
		if own, err = dropAll(); err != nil {
			return nil, fmt.Errorf("ingress program: %w", err)
		}
		prog = own
	}
	h, err := attach(index, prog, o.older)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach the ingress program: %w", err), own.Close())
	}
	return &ingress{own, h}, nil
}

// attach uses tcx, or what there was before.
func attach(index int, prog *ebpf.Program, older bool) (hook, error) {
	if !older {
		l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: prog, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, ebpf.ErrNotSupported) {
			return nil, err
		}
	}
	f, err := takeFilter(index, prog)
	if err != nil {
		return nil, err // f would be no nil hook
	}
	return f, nil
}

// tcx is the bpf_link of the program; nil where it is a filter.
func (i *ingress) tcx() interface{ FD() int } {
	l, _ := i.hook.(interface{ FD() int })
	return l
}

// leave has a filter stay when the port is closed: another process has it.
func (i *ingress) leave() {
	if f, is := i.hook.(*filter); is {
		f.stays = true
	}
}

func dropAll() (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "antrail_ingress", Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxDrop), asm.Return()},
	})
}

// close gives the frames back to the stack. An interface that is gone has taken
// the program with it, which is no error.
func (i *ingress) close() error {
	err := i.hook.Close()
	if errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENODEV) {
		err = nil
	}
	return errors.Join(err, i.prog.Close())
}
