package afxdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// program is the XDP program of one netdev, with the map that names its socket. It is attached by
// a bpf_link, which the kernel removes when the process ends for any reason. The netdev is then
// as it was before.
type program struct {
	sockets *ebpf.Map
	locals  *ebpf.Map // addresses of a filter; nil without one
	prog    *ebpf.Program
	link    link.Link
}

// rxQueueIndex is the offset of rx_queue_index in struct xdp_md (linux/bpf.h).
const rxQueueIndex = 16

// xdpPass is XDP_PASS of enum xdp_action: on to the kernel's own stack.
const xdpPass = 2

// attach loads the program and attaches it to the netdev with this index. The map has places for
// queues 0 to queue. With multiBuffer, the program accepts multi-buffer frames. With a filter, it
// takes only the filter's packets.
func attach(index, queue int, flags link.XDPAttachFlags, multiBuffer bool, filter *Filter) (*program, error) {
	p := &program{}
	err := p.load(queue, multiBuffer, filter)
	if err == nil {
		p.link, err = link.AttachXDP(link.XDPOptions{Program: p.prog, Interface: index, Flags: flags})
		err = explainAttach(err)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// load makes the program. A frame goes to the socket of its queue, and to the kernel's own stack
// while the queue has none.
func (p *program) load(queue int, multiBuffer bool, filter *Filter) error {
	var err error
	var first asm.Instructions
	if filter != nil {
		if p.locals, err = newLocals(); err != nil {
			return err
		}
		first = filter.filtering(p.locals)
	}
	flags := uint32(0)
	if multiBuffer {
		flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	p.sockets, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "antrail_sockets", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queue + 1),
	})
	if err != nil {
		return fmt.Errorf("socket map: %w", err)
	}
	p.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "antrail_xdp", Type: ebpf.XDP, License: "Apache-2.0", Flags: flags,
		Instructions: append(first,
			asm.LoadMem(asm.R2, asm.R1, rxQueueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, p.sockets.FD()),
			asm.Mov.Imm(asm.R3, xdpPass), // the verdict when the map has no socket there
			asm.FnRedirectMap.Call(),
			asm.Return(),
		),
	})
	if err != nil {
		return fmt.Errorf("XDP program: %w", err)
	}
	return nil
}

// explainAttach explains the usual refusals to an operator.
func explainAttach(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("attach XDP: the interface has an XDP program already: %w", err)
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("attach XDP: the driver refuses (an MTU above what it takes with XDP, or an offload that XDP excludes): %w", err)
	}
	return fmt.Errorf("attach XDP: %w", err)
}

// serve sends the frames of a queue to a socket.
func (p *program) serve(queue, fd int) error {
	if err := p.sockets.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("enter the socket of queue %d: %w", queue, err)
	}
	return nil
}

// close detaches the program from the netdev. If the netdev is gone, it has taken the program
// with it.
func (p *program) close() error {
	var err error
	if p.link != nil {
		err = p.link.Close()
	}
	return errors.Join(err, p.unload())
}

// unload closes program and maps.
func (p *program) unload() error {
	return errors.Join(p.prog.Close(), p.sockets.Close(), p.locals.Close()) // nil ones have nothing to close
}
