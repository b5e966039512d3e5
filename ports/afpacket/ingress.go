package afpacket

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// ingress is a program at tc ingress of an interface. It drops every frame, except those that an
// offload entry forwards. The kernel shows a frame to packet sockets first, so the port gets all
// of them. The Node's own stack, which would answer ARP and forward, gets none.
//
// If the process is killed, the program stays and continues to drop. So a pod whose switch is
// gone reaches nothing, until the link's next port replaces the program, or the link is deleted.
type ingress struct {
	prog *ebpf.Program // nil if it belongs to another owner
	hook hook
}

// tcxDrop is TCX_DROP of enum tcx_action_base.
const tcxDrop = 2

// takeIngress attaches the program of the offload entries, or otherwise one that drops all.
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

// hook is how a program is attached.
type hook interface {
	Update(*ebpf.Program) error
	Close() error
	keepProgram() // the program stays when the hook is closed, because another process uses it
}

// attach uses tcx, or its predecessor.
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
	if o.Attached { // a query for tcx would need CAP_NET_ADMIN
		return attached{}, nil
	}
	if o.older || CanForward() != nil {
		return orNil(openFilter(index))
	}
	return orNil(openTCX(index))
}

// orNil turns a nil pointer into a nil hook.
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

// close gives frames to the stack again. It returns nil if the interface is gone, because the
// program is gone with it.
func (i *ingress) close() error {
	err := i.hook.Close()
	if errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENODEV) {
		err = nil
	}
	return errors.Join(err, i.prog.Close())
}
