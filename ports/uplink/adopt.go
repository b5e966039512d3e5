package uplink

import (
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/underlay"
	"golang.org/x/sys/unix"
)

// The port goes on in another process with what its card has and what the whole way
// has. The ways to other Nodes are asked of the kernel anew. A process without privilege
// (Config.Given) also gets the map of the addresses that the card's program takes packets
// to, and the sockets to send by.

// Descriptors are those of the card, and then those of the whole way.
func (p *Port) Descriptors() []int {
	return append(p.card.Descriptors(), p.Port.Descriptors()...)
}

// Rest has Receive hand out only what was read already.
func (p *Port) Rest() {
	p.card.Rest()
	p.Port.Rest()
}

// Adopt opens the port with the descriptors of another one, which are its own from then
// on, also after an error. Before it moves frames, BeginTraffic has to be called, and then
// Relink.
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
	for _, fd := range append(ofCard, ofWhole...) {
		unix.Close(fd)
	}
	return p, err
}

// BeginTraffic has this process move frames: the process before does not any more.
func (p *Port) BeginTraffic() error { return p.card.BeginTraffic() }

// Relink puts this process's program in the place of that of the process before.
func (p *Port) Relink() error { return p.card.Relink() }
