package tap

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// The kernel carries established connections past the device (ports/offload). A program at
// tc egress takes what the host sends, and other programs let packets enter the host by the
// device. The program is there by a bpf_link, so it goes when the last process that has the
// port closes it or is killed.

// openHook attaches the program of the options, or checks that the one that the port was
// given is at the device. There may be neither.
func (p *Port) openHook(o *Options) error {
	switch {
	case p.hook != nil:
		if at, err := p.hook.Info(); err != nil || at.TCX() == nil || int(at.TCX().Ifindex) != p.index {
			return errors.Join(errors.New("taken over: the program is not at the device"), err)
		}
	case o.Offload != nil:
		at, err := link.AttachTCX(link.TCXOptions{Interface: p.index, Program: o.Offload, Attach: ebpf.AttachTCXEgress})
		if err != nil {
			p.info.Why += "; the kernel carries no connections past it: " + err.Error()
			return nil
		}
		p.hook = at
	default:
		return nil
	}
	p.info.OffloadLink = uint32(p.index)
	return nil
}

// closeHook takes the program off, if no other process has it. A device that is gone has
// taken the program with it.
func (p *Port) closeHook() error {
	if p.hook == nil {
		return nil
	}
	return p.hook.Close()
}

// OffloadSource implements ports.OffloadStack.
func (p *Port) OffloadSource(src [6]byte, mark uint32) [6]byte {
	if p.marks && (mark != 0 || [2]byte(src[:]) == markBytes) {
		return MarkMAC(mark)
	}
	return src
}

// markBytes is markPrefix as it is in an address.
var markBytes = [2]byte{markPrefix >> 8, markPrefix & 0xff}
