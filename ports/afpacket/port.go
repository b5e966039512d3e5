// Package afpacket is the port of a veth on packet sockets (packet(7)) with the virtio-net
// header. A frame arrives and leaves with the work that its sender left undone. So 64 kB of a
// pod's TCP stay one frame on their whole way. AF_XDP cannot do that: with XDP on a veth the pod
// has to cut segments and compute checksums itself.
//
//	port.go         the port; opening, reading, closing
//	socket.go       the socket and its options
//	adopt.go        a port that another process has opened
//	ingress.go      the program that keeps the frames from the Node's own stack
//	tcx.go          how it is attached
//	filter.go       the same before Linux 6.6
//	receive.go      batches from the kernel into frames
//	transmit.go     and back
//	linger_unsafe.go  closing the socket in the kernel after a kill
//	mmsg_unsafe.go  the arguments of recvmmsg and sendmmsg
//
// Its costs: one system call per batch each way, a copy of each frame each way, and the kernel's
// own path of an skb. It forwards a third as many small frames as AF_XDP, and many times as many
// large ones. It does not use the memory-mapped rings of packet sockets. A receive ring returns
// blocks late or holds a slot of 64 kB for each small frame. A transmit ring frees its frames
// while a veth's other end still reads them.
//
// A packet socket sees a frame before the Node's stack does, and does not consume it. A program
// at tc ingress does (ingress.go).
package afpacket

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// DefaultFrames is how many frames a port can receive into. Only used frames touch memory.
	DefaultFrames = 256
	// DefaultBuffer is the kernel memory for frames that wait for Receive, in bytes: a TCP window
	// of several megabytes.
	DefaultBuffer = 8 << 20
	// maxBatch is the frames per system call: a worker's batch.
	maxBatch = 64
)

// Options says which interface to open. Zero fields have defaults.
type Options struct {
	// Interface is a name in the calling thread's network namespace.
	Interface string
	// Why is Info's Why; "asked for" if empty.
	Why string
	// Frames is DefaultFrames when 0.
	Frames int
	// Buffer is DefaultBuffer when 0.
	Buffer int
	// Offload lets the kernel forward frames by the switch's offload entries; the zero value
	// forwards none.
	Offload Programs
	// Attached says that another process keeps and changes the programs of the socket and of the
	// link. Adopt then needs no capability, and neither BeginTraffic nor Close touches a program.
	// Open ignores it.
	Attached bool

	older bool // as before Linux 6.6, without tcx; for tests
}

// Programs forward frames in the kernel (ports/offload). Filter decides which ones, and keeps
// them from the socket. Ingress sends those, and drops all others.
type Programs struct{ Filter, Ingress *ebpf.Program }

// Port is one interface. One worker receives; any worker may transmit. Receive and Transmit each
// hold a lock, taken once per batch, so that Close can wait for both.
type Port struct {
	name    string
	info    ports.Info
	pool    *packet.HeapPool
	link    *ports.Link
	ingress *ingress
	count   ports.Counters

	rx struct {
		sync.Mutex
		in    *messages
		armed [maxBatch]*packet.Frame // where the next frames go; nil for none
		fresh [maxBatch]*packet.Frame // on their way into armed
		drops uint64                  // of the socket
	}
	tx struct {
		sync.Mutex
		out       *messages
		sizes     [maxBatch]messageSize // of the messages
		coalesced packet.Coalesced      // of the message being made
	}
	fd       int
	ring     int      // the ring of linger
	closed   bool     // under both locks
	rests    bool     // nothing more is received; under rx
	programs Programs // of an adopted port, for BeginTraffic
}

// Open makes a port of an interface of the calling thread's network namespace. Any thread may
// then use the port. It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. From then on, every frame
// that the interface receives goes to the port, none to the kernel's own stack.
func Open(o Options) (*Port, error) {
	p, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("afpacket: %s: %w", o.Interface, err)
	}
	return p, nil
}

func open(o Options) (*Port, error) {
	p, index, err := prepare(&o)
	if err != nil {
		return nil, err
	}
	if p.ingress, err = takeIngress(index, &o); err == nil {
		p.fd, err = openSocket(index, o.Buffer, o.Offload.Filter)
	}
	if err != nil {
		return nil, errors.Join(err, p.release())
	}
	p.ring = linger(p.fd)
	return p, nil
}

// prepare makes a port of an interface, without its socket and program.
func prepare(o *Options) (p *Port, index int, err error) {
	o.complete()
	nic, err := netlink.LinkByName(o.Interface)
	if err != nil {
		return nil, 0, err
	}
	index = nic.Attrs().Index
	p = &Port{name: o.Interface, fd: -1, ring: -1}
	if p.pool, err = ports.LargePool(o.Frames); err != nil {
		return nil, 0, err
	}
	p.rx.in, p.tx.out = newMessages(), newMessages()
	p.info = ports.Info{
		Driver: "afpacket", Mode: "virtio-net header, segments whole", Why: o.Why, MTU: nic.Attrs().MTU,
		Carries: ports.CarriesChecksum | ports.CarriesTCP | ports.CarriesUDP,
	}
	if !ports.KnowsUDPSegments() {
		p.info.Carries &^= ports.CarriesUDP
		p.info.Why += "; segments of UDP are cut: the kernel takes none before Linux 6.2"
	}
	copy(p.info.MAC[:], nic.Attrs().HardwareAddr)
	if o.Offload.Filter != nil {
		p.info.OffloadLink = uint32(index)
	}
	p.tx.coalesced.Datagrams = p.info.Carries&ports.CarriesUDP != 0
	p.link, err = ports.WatchLink(o.Interface, index)
	return p, index, err
}

func (o *Options) complete() {
	o.Why = cmp.Or(o.Why, "asked for")
	o.Frames, o.Buffer = cmp.Or(o.Frames, DefaultFrames), cmp.Or(o.Buffer, DefaultBuffer)
}

// Name is the interface's name.
func (p *Port) Name() string { return p.name }

// FD is the socket; -1 once closed.
func (p *Port) FD() int {
	p.rx.Lock()
	defer p.rx.Unlock()
	return p.fd
}

// Info describes the port; Up is the link's state now.
func (p *Port) Info() ports.Info {
	p.tx.Lock()
	defer p.tx.Unlock()
	info := p.info
	info.Up = !p.closed && p.link.Up()
	return info
}

// Stats includes the frames that the kernel dropped because the socket was full.
func (p *Port) Stats() ports.Stats {
	p.rx.Lock()
	p.countDrops()
	drops := p.rx.drops
	p.rx.Unlock()
	s := p.count.Stats()
	s.AddDrops(ports.RxRingFull, drops)
	return s
}

// DropSample is the last frame that was not sent for a reason.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

// countDrops reads the socket's drop counter, which resets it. The caller holds rx.
func (p *Port) countDrops() {
	if p.closed {
		return
	}
	if s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.rx.drops += uint64(s.Drops)
	}
}

// Close returns the interface to the Node's stack.
func (p *Port) Close() error {
	p.rx.Lock()
	defer p.rx.Unlock()
	p.tx.Lock()
	defer p.tx.Unlock()
	if p.closed {
		return nil
	}
	p.countDrops()
	p.closed = true
	p.disarm()
	return p.release()
}

// release releases everything that open has acquired so far.
func (p *Port) release() error {
	var errs []error
	if p.fd >= 0 {
		errs = append(errs, closeNow(p.ring), unix.Close(p.fd))
		p.fd, p.ring = -1, -1
	}
	if p.ingress != nil {
		errs = append(errs, p.ingress.close())
	}
	if p.link != nil {
		errs = append(errs, p.link.Close())
	}
	return errors.Join(errs...)
}
