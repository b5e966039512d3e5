// Package afpacket is the port of a veth on packet sockets (packet(7)) with the
// virtio-net header. A frame comes and goes with what its sender left undone. So 64 kB of
// a pod's TCP are one frame on their whole way. AF_XDP cannot do that: with XDP on a veth
// the pod has to cut segments and sum them up itself.
//
//	port.go         what a port is; opening, asking, closing
//	socket.go       the socket and its options
//	adopt.go        a port that another process has opened
//	ingress.go      the program that keeps the frames from the Node's own stack
//	tcx.go          what it is attached by
//	filter.go       the same before Linux 6.6
//	receive.go      batches from the kernel into frames
//	transmit.go     and back
//	linger_unsafe.go  what has the socket closed after a kill
//	mmsg_unsafe.go  the arguments of recvmmsg and sendmmsg
//
// What it costs: one system call per batch each way, a copy of each frame each way, and the
// kernel's own path of an skb. Of small frames it forwards a third of what AF_XDP does, of large
// ones many times as much. The memory-mapped rings of packet sockets are not used. A receive
// ring hands out blocks late or holds a slot of 64 kB for each small frame. A transmit ring's
// frames are given back while a veth's other end still reads them.
//
// A packet socket sees a frame before the Node's stack does, and does not take
// it away; a program at tc ingress does (ingress.go).
package afpacket

import (
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
	// DefaultFrames is how many frames a port has to receive into. Their memory
	// is touched only as far as they are used.
	DefaultFrames = 256
	// DefaultBuffer is the kernel memory that may wait for Receive, in bytes: a
	// TCP window of several megabytes.
	DefaultBuffer = 8 << 20
	// maxBatch is the frames per system call: a worker's batch.
	maxBatch = 64
)

// Options says which interface to open; what is zero has a default.
type Options struct {
	// Interface is a name in the calling thread's network namespace.
	Interface string
	// Why is what Info tells; "asked for" when empty.
	Why string
	// Frames is DefaultFrames when 0.
	Frames int
	// Buffer is DefaultBuffer when 0.
	Buffer int
	// Offload lets the kernel forward frames that the switch has asked it to;
	// the zero value lets none.
	Offload Programs
	// Attached says that another process keeps the programs of the socket and of the
	// link, and changes them. Adopt then needs no capability, and neither BeginTraffic nor Close
	// touches a program. Open ignores it.
	Attached bool

	older bool // as before Linux 6.6, without tcx; for tests
}

// Programs forward frames in the kernel (ports/offload): Filter decides which
// ones, and keeps them from the socket; Ingress sends those, and drops all
// others.
type Programs struct{ Filter, Ingress *ebpf.Program }

// Port is one interface. One worker receives; any worker may transmit. Receive
// and Transmit hold one lock each, taken once per batch, so that Close can
// wait for both.
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
		armed [maxBatch]*packet.Frame // where the next frames go; nil where none is
		fresh [maxBatch]*packet.Frame // on their way into armed
		drops uint64                  // of the socket
	}
	tx struct {
		sync.Mutex
		out       *messages
		sizes     [maxBatch]messageSize // of the messages
		coalesced packet.Coalesced      // of the one that is made
	}
	fd       int
	ring     int      // linger's
	closed   bool     // under both locks
	rests    bool     // nothing more is received; under rx
	programs Programs // of a port that was adopted, for BeginTraffic
}

// Open makes a port of an interface of the calling thread's network namespace;
// the port may then be used from any thread. It needs CAP_NET_RAW,
// CAP_NET_ADMIN and CAP_BPF. Every frame that the interface
// receives goes to the port from then on, none to the kernel's own stack.
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

// prepare makes a port of an interface, but for its socket and program.
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
	if o.Why == "" {
		o.Why = "asked for"
	}
	if o.Frames == 0 {
		o.Frames = DefaultFrames
	}
	if o.Buffer == 0 {
		o.Buffer = DefaultBuffer
	}
}

// Name is the interface's name.
func (p *Port) Name() string { return p.name }

// FD is the socket; -1 once closed.
func (p *Port) FD() int {
	p.rx.Lock()
	defer p.rx.Unlock()
	return p.fd
}

// Info tells what was opened; Up is asked of the kernel now.
func (p *Port) Info() ports.Info {
	p.tx.Lock()
	defer p.tx.Unlock()
	info := p.info
	info.Up = !p.closed && p.link.Up()
	return info
}

// Stats adds what the kernel dropped because nobody received it.
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

// countDrops asks the socket, which forgets what it has told. The caller holds
// rx.
func (p *Port) countDrops() {
	if p.closed {
		return
	}
	if s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.rx.drops += uint64(s.Drops)
	}
}

// Close gives the interface back to the Node's stack.
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

// release gives back what open took, as far as it came.
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
