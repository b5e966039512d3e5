package afpacket

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// ingress is a program at tc ingress of an interface that drops every frame, or every one
// that it was not asked to forward. The kernel shows a frame to packet sockets before, so
// the port gets them all. The Node's own stack, which would answer ARP and forward, gets
// none. It outlives a process that is killed, and goes on dropping. A pod whose switch is
// gone reaches nobody, until the next port of the link replaces the program, or the link
// goes.
type ingress struct {
	prog *ebpf.Program // nil when it is somebody else's
	hook hook
}

// tcxDrop is TCX_DROP of enum tcx_action_base.
const tcxDrop = 2

// takeIngress attaches the program of the offload entries; one that drops all when there is
// none.
func takeIngress(index int, o *Options) (*ingress, error) {
	prog := o.Offload.Ingress
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

// hook is what a program is attached by.
type hook interface {
	Update(*ebpf.Program) error
	Close() error
	keepProgram() // the program stays when the hook is closed: another process has it
}

// attach uses tcx, or what there was before.
func attach(index int, prog *ebpf.Program, older bool) (hook, error) {
	if older || CanForward() != nil {
		return orNil(takeFilter(index, prog))
	}
	return orNil(takeTCX(index, prog))
}

// attached is the hook of a program that another process keeps.
type attached struct{}

func (attached) Update(*ebpf.Program) error { return nil }
func (attached) Close() error               { return nil }
func (attached) keepProgram()               {}

// adoptHook is the hook of a link whose program another process has attached.
func adoptHook(index int, o Options) (hook, error) {
	if o.Attached { // asking for tcx would take CAP_NET_ADMIN
		return attached{}, nil
	}
	if o.older || CanForward() != nil {
		return orNil(openFilter(index))
	}
	return orNil(openTCX(index))
}

// orNil makes no hook of a nil pointer.
func orNil[H hook](h H, err error) (hook, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

func dropAll() (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: filterName, Type: ebpf.SchedCLS, License: "Apache-2.0",
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
