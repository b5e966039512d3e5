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
// removes when the process ends, however it ends.
type ingress struct {
	prog *ebpf.Program // nil when it is somebody else's
	link link.Link
}

// tcxDrop is TCX_DROP of enum tcx_action_base.
const tcxDrop = 2

// takeIngress attaches a program; one that drops all when it is nil.
func takeIngress(index int, prog *ebpf.Program) (*ingress, error) {
	var own *ebpf.Program
	if prog == nil {
		var err error
		if own, err = dropAll(); err != nil {
			return nil, fmt.Errorf("ingress program: %w", err)
		}
		prog = own
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: prog, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = fmt.Errorf("it takes Linux 6.6: %w", err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach the ingress program: %w", err), own.Close())
	}
	return &ingress{own, l}, nil
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
	err := i.link.Close()
	if errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENODEV) {
		err = nil
	}
	return errors.Join(err, i.prog.Close())
}
