// Package tap is the port of a TAP device: a network interface of the kernel whose other end is a
// file descriptor of the switch. The gateway of a Node is one (docs/decisions/002). The port
// receives packets that the host sends to the gateway, and its transmitted packets arrive at the
// host.
//
// Frames have the virtio-net header, so that 64 kB of the host's TCP are one frame. The cost is
// one system call per frame, each way (move.go). A packet mark can go with a frame (mark.go). The
// kernel may carry established connections past the device (offload.go). The device vanishes with
// the last process that has its descriptor (adopt.go), unless it has an owner (owner.go).
package tap

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/antrail/antrail/internal/sysctl"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// DefaultFrames is how many frames the port can receive into. Only used frames touch memory.
const DefaultFrames = 512

// portion is how many frames are taken from the pool at a time.
const portion = 64

// Options describes the device to make.
type Options struct {
	// Name is the name of the new interface, at most 15 bytes. It is made in
	// the calling thread's network namespace.
	Name string
	// MAC is its address; if zero, the kernel chooses one.
	MAC [6]byte
	// MTU is 1500 when 0.
	MTU int
	// Frames is DefaultFrames when 0.
	Frames int
	// Marks makes the port carry packet marks: see mark.go.
	Marks bool
	// Aside is for a device whose other end is not the host. Floods leave it out, and the host
	// speaks neither ARP nor IPv6 on it.
	Aside bool
	// Owner names the owner of a device that outlives the process (owner.go): at most 255 bytes.
	Owner string
	// Offload is a program for tc egress of the device (offload.go); nil for none.
	Offload *ebpf.Program
	// Given says that one process opens the port for another without privilege. Descriptors then
	// includes the program's link, and Adopt takes it.
	Given bool

	hook link.Link // given to Adopt
}

// Port is a TAP device. One worker receives; any worker may transmit.
type Port struct {
	info  ports.Info
	name  string
	marks bool
	index int
	owned bool // the device has an owner
	found bool // … and an earlier process of that owner made it
	pool  *packet.HeapPool
	link  *ports.Link
	count ports.Counters

	hook  link.Link // of the program at the device; nil for none
	given bool

	links *netlink.Handle // of the device's namespace, for its drop counter
	drops uint64          // that counter's last reading, under tx
	left  uint64          // that counter when the port was opened

	rx struct {
		sync.Mutex
		spare []*packet.Frame // empty frames to receive into
	}
	tx     sync.Mutex
	header [ports.VirtioLen]byte // of the frame being written
	fd     int
	gone   bool // another process deleted the device; under rx
	rests  bool // nothing more is received; under rx
	keep   bool // the device stays when the port is closed; under tx
	closed bool // under both locks
}

// Open makes the device, sets its address and MTU, and sets it up. No link of that name may
// exist, except one of the same owner that no process has open. It needs CAP_NET_ADMIN.
func Open(o Options) (*Port, error) {
	there, err := waits(o)
	fd := -1
	if err == nil {
		fd, err = create(o, there)
	}
	if err != nil {
		return nil, fmt.Errorf("tap: %s: %w", o.Name, err)
	}
	p, err := over(fd, o, (*Port).configure)
	if err == nil {
		p.found = there
	}
	return p, err
}

// over makes a port from a descriptor. If that fails, it closes the descriptor.
func over(fd int, o Options, configure func(*Port, Options) error) (*Port, error) {
	o.MTU, o.Frames = cmp.Or(o.MTU, 1500), cmp.Or(o.Frames, DefaultFrames)
	var err error
	p := &Port{name: o.Name, marks: o.Marks, owned: o.Owner != "", fd: fd, hook: o.hook, given: o.Given}
	p.rx.spare = make([]*packet.Frame, 0, portion)
	p.info = ports.Info{Driver: "tap", Mode: "tap, virtio-net header", Why: "asked for", MTU: o.MTU, Aside: o.Aside}
	if p.pool, err = ports.LargePool(o.Frames); err == nil {
		err = configure(p, o)
	}
	if err == nil {
		err = p.openHook(&o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tap: %s: %w", o.Name, err), p.release())
	}
	p.left = p.queueDrops() // while no process had the device open, or by the previous port
	return p, nil
}

// create makes the device, or attaches to the existing one.
func create(o Options, there bool) (int, error) {
	request, err := unix.NewIfreq(o.Name)
	if err != nil || o.Name == "" {
		return -1, errors.New("an interface name has 1 to 15 bytes")
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/net/tun: %w", err)
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if !there {
		flags |= unix.IFF_TUN_EXCL
	}
	request.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
			return -1, fmt.Errorf("a link of this name exists: %w", err)
		}
		return -1, fmt.Errorf("make the device: %w", err)
	}
	return fd, nil
}

// offer tells the kernel which work may be left undone on frames from the host. Linux before 6.2
// has no UDP segmentation here.
func (p *Port) offer() error {
	const tcp = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	p.info.Carries = ports.CarriesChecksum | ports.CarriesTCP | ports.CarriesUDP
	err := unix.IoctlSetInt(p.fd, unix.TUNSETOFFLOAD, tcp|unix.TUN_F_USO4|unix.TUN_F_USO6)
	if errors.Is(err, unix.EINVAL) {
		p.info.Carries &^= ports.CarriesUDP
		err = unix.IoctlSetInt(p.fd, unix.TUNSETOFFLOAD, tcp)
	}
	if err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	return nil
}

// configure changes a device to what the options say, where it differs, and sets it up.
func (p *Port) configure(o Options) error {
	device, err := p.find()
	if err != nil {
		return err
	}
	a := device.Attrs()
	if o.MAC != [6]byte{} && string(a.HardwareAddr) != string(o.MAC[:]) {
		if err := p.links.LinkSetHardwareAddr(device, net.HardwareAddr(o.MAC[:])); err != nil {
			return fmt.Errorf("address %s: %w", net.HardwareAddr(o.MAC[:]), err)
		}
	}
	if a.MTU != o.MTU {
		if err := p.links.LinkSetMTU(device, o.MTU); err != nil {
			return fmt.Errorf("MTU %d: %w", o.MTU, err)
		}
	}
	if o.Aside {
		if err := p.quiet(device); err != nil {
			return err
		}
	}
	if err := p.links.LinkSetUp(device); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if o.Owner != "" {
		if err := p.own(device, o.Owner); err != nil {
			return err
		}
	}
	return p.watch()
}

// find tells the kernel which work may be undone on frames, and finds the device.
func (p *Port) find() (device netlink.Link, err error) {
	if err := p.offer(); err != nil {
		return nil, err
	}
	if p.links, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	return p.links.LinkByName(p.name)
}

// watch records the device's properties, and follows its state.
func (p *Port) watch() error {
	device, err := p.links.LinkByName(p.name)
	if err != nil {
		return err
	}
	p.index = device.Attrs().Index
	copy(p.info.MAC[:], device.Attrs().HardwareAddr)
	p.link, err = ports.WatchLink(p.name, p.index)
	return err
}

// quiet prevents the host from speaking on the device.
func (p *Port) quiet(device netlink.Link) error {
	if err := p.links.LinkSetARPOff(device); err != nil {
		return fmt.Errorf("no ARP: %w", err)
	}
	err := sysctl.Write(sysctl.Root+"net/ipv6/conf/"+p.name+"/disable_ipv6", "1")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return fmt.Errorf("no IPv6: %w", err)
	}
	return nil
}

// Name is the interface's name.
func (p *Port) Name() string { return p.name }

// FD is the device's descriptor; -1 once it is closed or the device deleted.
func (p *Port) FD() int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed || p.gone {
		return -1
	}
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

// Stats includes the frames that the kernel dropped because the queue was full.
func (p *Port) Stats() ports.Stats {
	s := p.count.Stats()
	s.AddDrops(ports.RxRingFull, p.queueDrops()-p.left)
	return s
}

// DropSample is the last frame that was not sent for a reason.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

// queueDrops is the device's own counter: packets that the host transmits are received here.
func (p *Port) queueDrops() uint64 {
	p.tx.Lock()
	defer p.tx.Unlock()
	if p.closed {
		return p.drops
	}
	if device, err := p.links.LinkByIndex(p.index); err == nil && device.Attrs().Statistics != nil {
		p.drops = device.Attrs().Statistics.TxDropped
	}
	return p.drops
}

// Close deletes the device, unless it must be kept.
func (p *Port) Close() error {
	p.queueDrops()
	p.rx.Lock()
	defer p.rx.Unlock()
	p.tx.Lock()
	defer p.tx.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	packet.Release(p.rx.spare)
	p.rx.spare = nil
	var err error
	if p.owned && !p.keep {
		if err = p.persist(false); errors.Is(err, unix.EBADFD) {
			err = nil // deleted under us
		}
	}
	return errors.Join(err, p.release())
}

// release releases everything that Open acquired.
func (p *Port) release() error {
	err := errors.Join(p.closeHook(), unix.Close(p.fd))
	if p.links != nil {
		p.links.Close()
	}
	if p.link != nil {
		err = errors.Join(err, p.link.Close())
	}
	return err
}
