// Package uplink is the port to the other Nodes with AF_XDP on the Node's card. The card's XDP
// hook takes the tunnel's packets before the kernel's IP stack does, and sends packets past it.
//
// It is a short cut beside a complete port through the kernel's IP stack (ports/underlay). That
// port handles fragments, large segments, which the card cuts, and packets too long for the way.
// It also handles packets to Nodes whose MAC address the kernel does not know yet, or to which
// another link leads. So no packet has to wait, and routing, neighbours and path MTU stay with
// the kernel. If this process dies for any reason, the kernel removes the program from the card
// and handles all packets again.
//
//	vlanlink.go the links that support it
//	ways.go     the Nodes to which the card leads, and their MAC addresses
//	out.go      outer headers in front of frames
//	in.go       frames from the card, without outer headers
//	adopt.go    a port that another process has opened
//
// One goroutine may Receive while others Transmit, SetPeers, SetEgresses, call Stats or Close. A
// Follower follows the kernel's routes and neighbours.
package uplink

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
	"golang.org/x/sys/unix"
)

// Config says how to open the port.
type Config struct {
	underlay.Config
	// Link is the card, or a VLAN or bond above cards.
	Link string
	// Mode and BusyPoll are how AF_XDP drives a card or a veth, as in afxdp.Options. On a VLAN or
	// a bond the mode is Generic, without polling.
	Mode     afxdp.Mode
	BusyPoll afxdp.BusyPoll
	// Why is the reason for AF_XDP, for Info.
	Why string
	// Killed is afxdp.Options.Killed.
	Killed bool
}

// Port carries frames to other Nodes. It implements ports.Port.
type Port struct {
	*underlay.Port // the port through the kernel's IP stack
	config         Config
	card           *afxdp.Port
	ways           *ways
	count          ports.Counters // of the short cut
	epoll          int

	rx struct {
		sync.Mutex
		outer [64]*packet.Frame
	}
	tx struct {
		sync.Mutex
		card, rest []*packet.Frame
		whole      []uint32 // flows of the rest, by hash
	}
}

// Open opens the port in the calling thread's network namespace. Its frames are in this memory,
// or in the port's own if it is to be given.
func Open(memory *afxdp.Memory, c Config) (*Port, error) {
	card := memory.Open
	if c.Given {
		card = memory.OpenToGive
	}
	return openBy(c, card, underlay.Open)
}

// openBy opens the port with functions that open the card's port and the underlay port.
func openBy(c Config, card func(afxdp.Options) (*afxdp.Port, error), whole func(underlay.Config) (*underlay.Port, error)) (*Port, error) {
	onCard, err := openCard(&c, card)
	if err != nil {
		return nil, fmt.Errorf("uplink %s: %w", c.Link, err)
	}
	c.Apart = onCard.Generic() // before a generic program sees datagrams, the kernel has joined them
	byStack, err := whole(c.Config)
	if err != nil {
		return nil, errors.Join(err, onCard.Close())
	}
	p := &Port{Port: byStack, card: onCard, config: c, epoll: -1}
	if err := p.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("uplink %s: %w", c.Link, err), p.Close())
	}
	return p, nil
}

// openCard opens the port of the card. It takes no packets until it has the Node's addresses.
func openCard(c *Config, open func(afxdp.Options) (*afxdp.Port, error)) (*afxdp.Port, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	inner := tunnel.HeaderLen
	if c.Kind.Port() != 0 {
		inner += packet.UDPLen
	}
	o.Interface, o.Why, o.Attached, o.Killed = c.Link, c.Why, c.Given, c.Killed
	o.Filter = &afxdp.Filter{Proto: c.Kind.Proto(), Port: c.Kind.Port(), Inner: inner}
	return open(o)
}

func (p *Port) open() (err error) {
	if p.ways, err = openWays(p.config.Link, p.config.Local); err != nil {
		return err
	}
	p.ways.setNodes(p.config.Peers)
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for _, fd := range []int{p.card.FD(), p.Port.FD()} {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return err
		}
	}
	return p.card.SetLocal([]netip.Addr{p.config.Local})
}

// SetPeers replaces the known Nodes, as in underlay.Port.
func (p *Port) SetPeers(nodes []underlay.Peer) {
	p.Port.SetPeers(nodes)
	p.ways.setNodes(nodes)
}

// SetEgresses replaces the addresses of Egresses, as in underlay.Port. Packets to those of other
// Nodes go by the underlay port.
func (p *Port) SetEgresses(here, far []netip.Addr) error {
	err := p.Port.SetEgresses(here, far)
	return errors.Join(err, p.card.SetLocal(append([]netip.Addr{p.config.Local}, here...)))
}

// FD watches the card and the sockets; -1 once the port is closed.
func (p *Port) FD() int {
	p.rx.Lock()
	defer p.rx.Unlock()
	return p.epoll
}

// Flush makes the card send.
func (p *Port) Flush() { p.card.Flush() }

// Info describes the port.
func (p *Port) Info() ports.Info {
	i, card := p.Port.Info(), p.card.Info()
	i.Driver, i.Mode, i.Why = "uplink", fmt.Sprintf("%s, afxdp on %s (%s)", i.Mode, p.config.Link, card.Mode), card.Why
	return i
}

// Stats counts since the port was opened: both ways together, as the switch sees frames.
func (p *Port) Stats() ports.Stats {
	s := p.Port.Stats()
	s = plus(s, p.count.Stats())
	card := p.card.Stats()
	card.RxPackets, card.RxBytes, card.TxPackets, card.TxBytes = 0, 0, 0, 0 // with outer headers; counted above
	return plus(s, card)
}

func plus(a, b ports.Stats) ports.Stats {
	a.RxPackets, a.RxBytes, a.RxDropped, a.RxErrors = a.RxPackets+b.RxPackets, a.RxBytes+b.RxBytes, a.RxDropped+b.RxDropped, a.RxErrors+b.RxErrors
	a.TxPackets, a.TxBytes, a.TxDropped, a.TxErrors = a.TxPackets+b.TxPackets, a.TxBytes+b.TxBytes, a.TxDropped+b.TxDropped, a.TxErrors+b.TxErrors
	a.RxJoined, a.TxSplit = a.RxJoined+b.RxJoined, a.TxSplit+b.TxSplit
	for reason, n := range b.Reasons {
		a.Reasons[reason] += n
	}
	return a
}

// Close ends the port. A second Close does nothing.
func (p *Port) Close() error {
	p.rx.Lock()
	defer p.rx.Unlock()
	p.tx.Lock()
	defer p.tx.Unlock()
	var errs []error
	if p.epoll >= 0 {
		errs = append(errs, unix.Close(p.epoll))
		p.epoll = -1
	}
	if p.ways != nil {
		p.ways.close()
	}
	return errors.Join(append(errs, p.card.Close(), p.Port.Close())...)
}

const _ = uint(packet.Headroom - outerMost) // does not compile if outer headers do not fit

// outerMost is the largest number of bytes in outer headers.
const outerMost = packet.EthernetLen + packet.IPv6Len + packet.UDPLen + tunnel.HeaderLen
