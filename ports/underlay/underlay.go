// Package underlay is the port to the other Nodes: it carries inner frames in Geneve, VXLAN or
// GRE over the Node's own IP stack. So the kernel does routing, ARP, path MTU discovery, and
// firewalling by the Node's rules.
//
// The port receives at the Node's own address and at the Egress addresses that the Node holds.
// The Node's own address has many sockets, among which sending pods are divided
// (receivergroup.go). There are also many sending sockets, so that flows have different source
// ports (RFC 8926, section 3.3; RFC 7348, section 5). Receive-side scaling on the way can then
// distinguish them. All frames of a flow go by one socket. A sending socket's filter refuses
// everything that the socket receives. GRE has no ports: its sockets are raw ones, and one is
// enough for sending.
//
// A system call moves many messages. A UDP message has many datagrams if they have one size, one
// flow, and are to or from one Node. The kernel or the card cuts it on its way out (UDP_SEGMENT),
// and joins incoming datagrams (UDP_GRO).
//
//	transmit.go   frames, in the order of their flows, into the outbox
//	outbox.go     messages, and the kernel's results for them
//	long.go       datagrams that are too long for their way
//	receivemessages.go messages, cut again
//	peers.go      the known Nodes, and what each of them may send
//	adopt.go      sockets that another process has opened
//	offload.go    connections that the kernel carries by itself
//	receive.go    frames; consecutive TCP segments become one
//	rawgre.go     the outer header that raw sockets add
//	receivepartial.go packets with checksums and segments undone
//	traced.go     live-traced frames, which carry their walk id
//	socket.go     sockets, and mmsg_unsafe.go their calls for many messages
//	receivergroup.go the sockets of one address, and whose turn it is
//	egress.go     the sockets of Egresses' addresses
//	reason.go     drop reasons of this port
//
// The sockets belong to the network namespace in which Open or SetEgresses was called.
//
// The port only talks to the known Nodes. It does not send frames to any other address. It drops
// and counts frames from any other address, and frames that a Node sends in the name of another
// Node's pods. A Node that holds Egresses is also known by their addresses, as a destination.
//
// One goroutine may Receive while others Transmit, SetPeers, SetEgresses, call Stats or Close.
package underlay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/ways"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const (
	defaultMTU    = 1450
	defaultFrames = 4096
	socketBuffer  = 4 << 20 // bytes; beyond rmem_max if allowed
)

// Config says how to open the port.
type Config struct {
	// Name is the name for people: antrea-tun0.
	Name string
	// Kind is the kind of tunnel; Geneve by default.
	Kind tunnel.Kind
	// Local is this Node's address on the underlay.
	Local netip.Addr
	// MTU is the inner MTU, 1450 when 0. A longer packet, or one longer than the way to its Node
	// carries, is reported by Longs or fragmented (long.go).
	MTU int
	// MAC is the address in Info.
	MAC [6]byte
	// Frames is the number of receive buffers, 4096 when 0.
	Frames int
	// Peers are the known Nodes at the start, and Pods this Node's own pod ranges.
	Peers []Peer
	Pods  []netip.Prefix
	// AnyNetwork accepts frames of all virtual networks, for entries that distinguish them by
	// tun_id. Otherwise only network 0 is accepted.
	AnyNetwork bool
	// Network is the virtual network of all frames, if AnyNetwork is not set and Only is.
	Network uint32
	// Only is the only address to send to and receive from; invalid if Peers applies.
	Only netip.Addr
	// AnyPeer accepts frames from all addresses, and sends to all. Entries must then check
	// tun_src.
	AnyPeer bool
	// Options makes frames keep Geneve options, which the switch's entries read. The switch then
	// drops packets with unknown critical options. Otherwise this port does.
	Options bool
	// Apart makes datagrams arrive one by one, because an AF_XDP program looks at them before the
	// sockets do. It would take several joined datagrams for one.
	Apart bool

	// Given says that one process opens the port for another that may not open sockets.
	// Descriptors then includes the sending sockets, and Adopt takes them. After Adopt,
	// SetEgresses opens no socket: AddReceivers adds them.
	Given bool

	// Unwrap is a program that takes packets out of the tunnel at tc ingress (offload.go); nil
	// for none. Open attaches it.
	Unwrap *ebpf.Program

	inherited *[]int // sockets given to Adopt, until the port has them
}

// Port carries frames to other Nodes. It implements ports.Port.
type Port struct {
	config  Config
	pool    *packet.HeapPool
	large   *packet.HeapPool                        // for joined segments
	peers   atomic.Pointer[peers]                   // known Nodes
	far     atomic.Pointer[map[netip.Addr]struct{}] // addresses of their Egresses
	silent  atomic.Pointer[map[netip.Addr]struct{}] // addresses of both from SetSilent
	here    atomic.Pointer[map[netip.Addr]struct{}] // Egresses that this Node holds
	hook    hook
	changed atomic.Pointer[func()] // the function of WhenChanged
	apart   string                 // why the kernel does not carry connections by itself
	count   counters

	rxMu       sync.Mutex  // Receive against Close
	rxs        []*receiver // the first is the Node's own address; none: closed
	ready      readySockets
	rests      bool // nothing more is read
	epoll      int  // watches all of them
	in         *inbox
	spare      [maxBatch]*packet.Frame // for received datagrams; spares is how many there are
	spares     int
	gsoMessage packet.Coalesced // of segments that were received together
	joined     [1]*packet.Frame // for the next frame of coalesced segments

	lanes   [numLanes]lane // for Transmit; the fields below are written under the locks of all
	senders []int          // sockets, by the hash of a flow
	sources []uint16       // their ports
	closed  bool
	noDF    int // a socket whose datagrams are fragmented on their way
	longs   chan Long

	askMu sync.Mutex // PathMTU against itself and Close
	asker int        // a socket that only asks for routes; -1: closed
}

// hook is the program at the link of the Node's address.
type hook struct {
	link  link.Link // nil for none
	index uint32
	ways  *ways.Ways
}

// Open opens the port. It fails if the address is not the Node's or the tunnel's UDP port is in
// use there. For GRE it fails without the capability NET_RAW.
func Open(c Config) (*Port, error) {
	if !c.Local.IsValid() || c.Local.IsUnspecified() || c.Local.Is4In6() {
		return nil, fmt.Errorf("underlay: %q is no address to receive %v on", c.Local, c.Kind)
	}
	c.MTU, c.Frames = cmp.Or(c.MTU, defaultMTU), cmp.Or(c.Frames, defaultFrames)
	p := &Port{config: c, longs: make(chan Long, maxLongs)}
	for i := range p.lanes {
		p.lanes[i].Port, p.lanes[i].out = p, newOutbox(c.Kind)
	}
	if c.Only.IsValid() {
		c.Peers = []Peer{{Address: c.Only}}
	}
	p.SetPeers(c.Peers)
	p.far.Store(setOf(nil))
	p.here.Store(setOf(nil))
	p.SetSilent(nil)
	p.pool = packet.NewPool(c.Frames, packet.Headroom+ports.MaxFrame(c.MTU))
	var err error
	if p.in, err = newInbox(); err != nil {
		return nil, fmt.Errorf("underlay: %w", err)
	}
	if p.large, err = ports.LargePool(maxJoined); err != nil {
		return nil, fmt.Errorf("underlay: %w", err)
	}
	if err := p.openSockets(); err != nil {
		_ = p.closeHook()
		return nil, err
	}
	if err := p.openHook(); err != nil {
		_ = p.closeHook()
		p.hook, p.apart = hook{}, "; the kernel carries no connections by itself: "+err.Error()
	}
	return p, nil
}

func (p *Port) openSockets() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("underlay: %w", err)
	}
	if err = p.openReceivers(); err != nil {
		p.closeReceivers()
		return err
	}
	if err = p.openToSend(); err != nil {
		p.closeReceivers()
		return fmt.Errorf("underlay: send %v from %v: %w", p.config.Kind, p.config.Local, err)
	}
	return nil
}

// openToSend opens the sending sockets, unless they were inherited.
func (p *Port) openToSend() (err error) {
	given := p.senders != nil
	if !given {
		if p.senders, err = openSenders(p.config.Kind, p.config.Local); err != nil {
			return err
		}
	}
	if p.sources, err = portsOf(p.senders); err == nil && !given {
		err = p.openLong()
	}
	if err != nil {
		_ = ports.CloseAll(p.senders)
		if given {
			_ = p.closeLong()
		}
	}
	return err
}

// openReceivers opens the Node's own sockets, or takes the inherited ones.
func (p *Port) openReceivers() (err error) {
	if p.config.inherited == nil {
		err = p.listen(p.config.Local)
	} else {
		err = p.inherit(p.config.inherited)
	}
	if err == nil {
		p.fillGroup()
	}
	return err
}

func (p *Port) closeReceivers() {
	for _, r := range p.rxs {
		unix.Close(r.fd)
	}
	unix.Close(p.epoll)
}

// SetPeers replaces the known Nodes and their pod ranges, for packets of either
// direction from now on.
func (p *Port) SetPeers(nodes []Peer) {
	now := newPeers(nodes, &p.config)
	if before := p.peers.Swap(now); before == nil || !before.equal(now) {
		p.hook.ways.Keep(p.sendsTo)
		p.tellChanged()
	}
}

// WhenChanged implements ports.OffloadTunnel.
func (p *Port) WhenChanged(changed func()) { p.changed.Store(&changed) }

func (p *Port) tellChanged() {
	if f := p.changed.Load(); f != nil {
		(*f)()
	}
}

// SetSilent sets the Nodes that do not answer ARP or NDP. The kernel drops frames to them without
// an error. The port still sends such frames, because the kernel may have learned the address
// since, and counts them as dropped.
func (p *Port) SetSilent(nodes []netip.Addr) { p.replaceSet(&p.silent, nodes) }

// replaceSet replaces a set of addresses that the kernel's ways depend on.
func (p *Port) replaceSet(set *atomic.Pointer[map[netip.Addr]struct{}], all []netip.Addr) {
	now := setOf(all)
	if before := set.Swap(now); before == nil || !maps.Equal(*before, *now) {
		p.tellChanged()
	}
}

func setOf(all []netip.Addr) *map[netip.Addr]struct{} {
	set := make(map[netip.Addr]struct{}, len(all))
	for _, a := range all {
		set[a.Unmap()] = struct{}{}
	}
	return &set
}

// SourcePort is the UDP source port for frames of a flow, by its hash.
func (p *Port) SourcePort(hash uint32) uint16 { return p.sources[hash%uint32(len(p.sources))] }

// Admit treats a datagram from another Node that came by another way as this port's own. It
// returns the inner frame and the outer header for the entries. It counts drops like those of the
// sockets.
func (p *Port) Admit(datagram []byte, src, dst netip.Addr) (inner []byte, t packet.Tunnel, ok bool) {
	from, known := p.peers.Load().sender(src)
	if !known {
		p.count.refuseSource(src, datagram, len(datagram), 1)
		return nil, t, false
	}
	inner, vni, options, ok := p.unwrap(datagram, &from, ports.MaxFrame(p.config.MTU))
	if !ok {
		return nil, t, false
	}
	return inner, packet.Tunnel{Src: src, Dst: dst, ID: uint64(vni), Trace: p.config.Kind.Trace(datagram), Options: packet.TunnelOptions(options)}, true
}

// DropSample is the last datagram that was dropped for a reason, with its tunnel header and its
// sender. For a reason not to send, it is the last unsent frame, with its Node.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

// RefuseOuter counts a packet that came by another way with wrong outer headers. The sockets get
// no such packet, because the kernel has dropped it.
func (p *Port) RefuseOuter() { p.count.countDrop(ports.RxOuter, 1) }

// sendsTo reports whether an address is a known Node's.
func (p *Port) sendsTo(a netip.Addr) bool {
	_, node := p.peers.Load().sender(a)
	_, egress := (*p.far.Load())[a]
	return node || egress
}

// Name is the configured name.
func (p *Port) Name() string { return p.config.Name }

// FD watches the receiving sockets; -1 once the port is closed.
func (p *Port) FD() int {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	return p.epoll
}

// Flush does nothing, because Transmit has sent all frames when it returns.
func (p *Port) Flush() {}

// Info describes the port.
func (p *Port) Info() ports.Info {
	p.lanes[0].mu.Lock()
	defer p.lanes[0].mu.Unlock()
	return ports.Info{
		Driver: "underlay",
		Mode:   fmt.Sprintf("%v %v", p.config.Kind, p.end()),
		Why:    "frames to other Nodes go through the Node's own IP stack" + p.apart,
		MAC:    p.config.MAC,
		MTU:    p.config.MTU,
		Up:     !p.closed,
		Tunnel: true,

		TunnelTo: p.config.only(),

		Carries:     carries,
		OffloadLink: p.hook.index,
	}
}

// only is the only far end; the zero value if there are several.
func (c *Config) only() ports.TunnelEnd {
	if !c.Only.IsValid() {
		return ports.TunnelEnd{}
	}
	return ports.TunnelEnd{Address: c.Only, Network: c.Network, AnyNetwork: c.AnyNetwork}
}

// end is where the port receives other Nodes' packets: an address, with a port if the tunnel has
// one.
func (p *Port) end() string {
	if port := p.config.Kind.Port(); port != 0 {
		return netip.AddrPortFrom(p.config.Local, port).String()
	}
	return p.config.Local.String()
}

// Stats counts since the port was opened. It includes datagrams that the kernel dropped because
// the receiving socket was full, as "rx ring full".
func (p *Port) Stats() ports.Stats {
	p.rxMu.Lock()
	p.countDrops()
	p.rxMu.Unlock()
	return p.count.stats()
}

// Close ends the port. A second Close does nothing.
func (p *Port) Close() error {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	for i := range p.lanes {
		p.lanes[i].mu.Lock()
		defer p.lanes[i].mu.Unlock()
	}
	if p.closed {
		return nil
	}
	p.closed = true
	p.countDrops()
	p.drop()
	err := errors.Join(unix.Close(p.epoll), ports.CloseAll(p.senders), p.closeHook(), p.closeLong())
	for _, r := range p.rxs {
		err = errors.Join(err, unix.Close(r.fd))
	}
	p.rxs, p.epoll, p.senders = nil, -1, nil
	return err
}
