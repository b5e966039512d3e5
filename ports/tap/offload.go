package tap

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// The kernel forwards established connections past the device (ports/offload). A program at tc
// egress takes the packets that the host sends, and other programs let packets enter the host by
// the device. A bpf_link attaches the program, so it is removed when the last process that has
// the port closes it or is killed.

// openHook attaches the program of the options, or checks that the given one is at the device.
// There may be neither.
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

// closeHook detaches the program, if no other process has it. If the device is gone, it has taken
// the program with it.
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

// markBytes is markPrefix in the byte order of an address.
var markBytes = [2]byte{markPrefix >> 8, markPrefix & 0xff}
