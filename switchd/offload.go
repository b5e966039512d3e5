package switchd

import (
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/offload"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
)

// Offload: packets of established connections pass in the kernel (ports/offload,
// dataplane/offload).

// Offload is the state of the kernel's offload.
type Offload struct {
	// Why is the reason why it is off; "" if it is on.
	Why    string
	kernel *offload.Kernel // nil when off
	// programs are the kernel's, or those of the switch that gets the sockets.
	programs afpacket.Programs
	// unwrap and gateway are for a tunnel and a tap that are opened for another switch; nil for
	// none.
	unwrap, gateway *ebpf.Program
}

// OpenOffload loads the programs that forward in the kernel. The error is the reason why this
// kernel cannot; the switch then forwards everything itself.
func OpenOffload() (*Offload, error) {
	if err := afpacket.CanForward(); err != nil {
		return nil, err
	}
	k, err := offload.Open(offload.DefaultRoom)
	if err != nil {
		return nil, err
	}
	return offloadBy(k), nil
}

// AdoptOffload uses the programs and maps of another process (Descriptors).
func AdoptOffload(fds []int) (*Offload, error) {
	k, err := offload.Adopt(fds)
	if err != nil {
		return nil, err
	}
	return offloadBy(k), nil
}

func offloadBy(k *offload.Kernel) *Offload {
	return &Offload{kernel: k, programs: afpacket.Programs{Filter: k.Filter(), Ingress: k.Ingress()}}
}

// Descriptors are the programs and maps; nil if the offload is off.
func (o *Offload) Descriptors() []int {
	if o.kernel == nil {
		return nil
	}
	return o.kernel.Descriptors()
}

// offloader is the switch's offload; nil for none.
func (o *Offload) offloader() ports.Offload {
	if o.kernel == nil {
		return nil // kernel would be no nil Offload entries
	}
	return o.kernel
}

// Programs are for packet sockets.
func (o *Offload) Programs() (p afpacket.Programs) {
	if o != nil {
		p = o.programs
	}
	return p
}

// Unwrap is for the port of a kind of tunnel over IPv4 or IPv6; nil for none.
func (o *Offload) Unwrap(kind tunnel.Kind, over6 bool) *ebpf.Program {
	switch {
	case o == nil:
		return nil
	case o.kernel != nil:
		return o.kernel.Unwrap(kind, over6)
	}
	return o.unwrap
}

// Gateway is for a tap; nil for none.
func (o *Offload) Gateway() *ebpf.Program {
	switch {
	case o == nil:
		return nil
	case o.kernel != nil:
		return o.kernel.Gateway()
	}
	return o.gateway
}

// Close unloads the programs. Close the switch first.
func (o *Offload) Close() error {
	if o == nil || o.kernel == nil {
		return nil
	}
	return o.kernel.Close()
}
