package offload

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Trial runs the programs over frames that no interface has received, to compare their results
// with the switch's. The instructions are the same, except for the source of the interface's
// number. A trial has it in the packet's mark, and needs no interface.
type Trial struct {
	k                        *Kernel
	filter, ingress, gateway *ebpf.Program

	unwraps [numOuters]*ebpf.Program
}

// tcRedirect is TC_ACT_REDIRECT of linux/pkt_cls.h.
const tcRedirect = 7

// NewTrial loads the programs once more. A Kernel has one trial at a time, and no port meanwhile.
func (k *Kernel) NewTrial() (*Trial, error) {
	t := &Trial{k: k}
	var err error
	if t.filter, err = load("antrail_try", ebpf.SchedCLS, filterCode(&k.maps, skbMark)); err != nil {
		return nil, err
	}
	if t.ingress, err = load("antrail_try", ebpf.SchedCLS, ingressCode(&k.maps, skbMark)); err == nil {
		t.gateway, err = load("antrail_try", ebpf.SchedCLS, gatewayCode(&k.maps, skbMark))
	}
	if err == nil {
		err = loadUnwraps("antrail_try", &t.unwraps, &k.maps, skbMark)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// skBuff is the start of struct __sk_buff of linux/bpf.h, up to gso_size.
type skBuff struct {
	_       [skbMark]byte
	Mark    uint32
	_       [skbGSOSize - skbMark - 4]byte
	GSOSize uint32
	_       [12]byte
}

// Received is the kernel's treatment of a frame that an interface received. It sends the changed
// frame by another interface, or leaves the frame to the port (taken is false).
func (t *Trial) Received(link uint32, frame []byte) (out uint32, sent []byte, taken bool, err error) {
	back, err := stayOnProcessor()
	if err != nil {
		return 0, nil, false, err
	}
	defer back()
	verdict, _, err := run(t.filter, link, frame)
	if err != nil || int32(verdict) == keepAll {
		return 0, nil, false, err
	}
	for i := range t.k.controlAt[1:] {
		if place := t.k.controlAt[1+i].taken.Load(); place != 0 {
			out = t.k.offloadsAt[place-1].Out
		}
	}
	verdict, sent, err = run(t.ingress, link, frame)
	if err == nil && verdict != tcRedirect {
		err = fmt.Errorf("the filter kept the frame, and the ingress program's verdict is %d", verdict)
	}
	return out, sent, true, err
}

// FromUnderlay is the kernel's treatment of a frame in outer headers that the underlay's link
// received. It sends the changed inner frame by another interface, or leaves the frame to the
// Node's stack (taken is false).
func (t *Trial) FromUnderlay(kind tunnel.Kind, over6 bool, link uint32, frame []byte) (out uint32, sent []byte, taken bool, err error) {
	return t.oneRun(t.unwraps[outerOf(kind, over6)], link, frame)
}

// FromStack is the kernel's treatment of a frame that the Node's stack sends by the gateway. It
// sends the changed frame by another interface, or leaves the frame to the port.
func (t *Trial) FromStack(link uint32, frame []byte) (out uint32, sent []byte, taken bool, err error) {
	return t.oneRun(t.gateway, link, frame)
}

// oneRun runs a single program.
func (t *Trial) oneRun(p *ebpf.Program, link uint32, frame []byte) (out uint32, sent []byte, taken bool, err error) {
	before := make([]uint64, len(t.k.offloadsAt))
	for i := range before {
		before[i] = t.k.offloadsAt[i].Packets.Load()
	}
	verdict, sent, err := run(p, link, frame)
	if err != nil || int32(verdict) == keepAll {
		return 0, nil, false, err
	}
	if verdict != tcRedirect {
		err = fmt.Errorf("the verdict is %d", verdict)
	}
	for i := range before {
		if t.k.offloadsAt[i].Packets.Load() != before[i] {
			out = t.k.offloadsAt[i].Out
		}
	}
	return out, sent, true, err
}

func run(p *ebpf.Program, link uint32, frame []byte) (uint32, []byte, error) {
	o := &ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+len(ports.OffloadOuter{})), Context: skBuff{Mark: link}}
	verdict, err := p.Run(o)
	return verdict, o.DataOut, err
}

// stayOnProcessor keeps the calling goroutine on its current processor, until the returned
// function is called.
func stayOnProcessor() (func(), error) {
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		unix.SchedSetaffinity(0, &all) // the previous set
		runtime.UnlockOSThread()
	}, nil
}

// Close unloads the programs.
func (t *Trial) Close() error {
	errs := []error{t.filter.Close(), t.ingress.Close(), t.gateway.Close()}
	for _, p := range t.unwraps {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
