package uplink

import (
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/underlay"
)

// Another process takes the port over with the descriptors of the card's port and of the underlay
// port. It asks the kernel again for the ways to other Nodes. A process without privilege
// (Config.Given) also gets the map of the addresses whose packets the card's program takes, and
// the sending sockets.

// Descriptors are those of the card's port, followed by those of the underlay port.
func (p *Port) Descriptors() []int {
	return append(p.card.Descriptors(), p.Port.Descriptors()...)
}

// Rest makes Receive return only frames that were already read.
func (p *Port) Rest() {
	p.card.Rest()
	p.Port.Rest()
}

// Adopt opens the port with the descriptors of another one. It owns them from then on, also after
// an error. Before it moves frames, the caller calls BeginTraffic, and then Relink.
func Adopt(memory *afxdp.Memory, c Config, fds []int) (*Port, error) {
	n := afxdp.Descriptors
	if c.Given {
		n++ // the map of addresses
	}
	n = min(len(fds), n)
	ofCard, ofWhole := fds[:n], fds[n:]
	p, err := openBy(c, func(o afxdp.Options) (*afxdp.Port, error) {
		taken := ofCard
		ofCard = nil
		return memory.Adopt(o, taken)
	}, func(c underlay.Config) (*underlay.Port, error) {
		taken := ofWhole
		ofWhole = nil
		return underlay.Adopt(c, taken)
	})
	ports.CloseAll(append(ofCard, ofWhole...))
	return p, err
}

// BeginTraffic starts moving frames in this process. The predecessor has stopped.
func (p *Port) BeginTraffic() error { return p.card.BeginTraffic() }

// Relink replaces the predecessor's program by this process's own.
func (p *Port) Relink() error { return p.card.Relink() }
