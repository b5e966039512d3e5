package underlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/ways"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// The kernel carries established connections by itself (ports/offload). Programs of pods'
// ports put outer headers in front, and a program at the link of the Node's address takes
// them off. This port says what those headers are, and which of them it would receive. It
// has the kernel's connections taken back before it says another thing.
//
// The program is at the link by a bpf_link, so it goes when the last process that has the
// port closes it or is killed.

// longestOffloaded is the longest inner IP packet that is not to be segmented: the kernel
// makes no room in front of more than 16 kB.
const longestOffloaded = 16000

// openHook attaches the program of the configuration, or goes on with the one that the port
// was given. There may be neither.
func (p *Port) openHook() error {
	var err error
	if p.hook.link == nil && p.config.Unwrap != nil {
		err = p.attach()
	}
	if p.hook.link == nil || err != nil {
		return err
	}
	p.hook.ways, err = ways.Open(p.config.Local, p.seenMTU, p.tellChanged)
	return err
}

// attach attaches the program at the link of the Node's address.
func (p *Port) attach() error {
	if !p.config.Local.Is4() {
		return errors.New("the kernel carries tunnels over IPv4 only")
	}
	at, err := ways.LinkWith(p.config.Local)
	if err != nil {
		return err
	}
	if !ways.CarriesEthernet(at) {
		return fmt.Errorf("%s has no Ethernet headers", at.Attrs().Name)
	}
	p.hook.index = uint32(at.Attrs().Index)
	p.hook.link, err = link.AttachTCX(link.TCXOptions{Interface: at.Attrs().Index, Program: p.config.Unwrap, Attach: ebpf.AttachTCXIngress})
	return err
}

// inheritHook takes the program's link, which is the last descriptor if it is there.
func (p *Port) inheritHook(fds []int) ([]int, error) {
	n := len(fds) - 1
	if n < 0 {
		return fds, nil
	}
	if _, err := unix.Getsockname(fds[n]); !errors.Is(err, unix.ENOTSOCK) {
		return fds, nil
	}
	l, err := link.NewFromFD(fds[n])
	if err != nil { // which has closed it
		return fds[:n], fmt.Errorf("underlay: the last descriptor: it is no socket of IP and no link of a program: %w", err)
	}
	p.hook.link = l
	info, err := l.Info()
	if err != nil {
		return fds[:n], err
	}
	if info.TCX() == nil {
		return fds[:n], errors.New("underlay: the last descriptor is no link of tcx")
	}
	p.hook.index = info.TCX().Ifindex
	return fds[:n], nil
}

// closeHook takes the program off, if no other process has it.
func (p *Port) closeHook() error {
	p.hook.ways.Close()
	if p.hook.link == nil {
		return nil
	}
	return p.hook.link.Close()
}

// OffloadFrom implements ports.OffloadTunnel.
func (p *Port) OffloadFrom(inner []byte, t *packet.Tunnel) (hop ports.OffloadHop, ok bool) {
	from, known := p.peers.Load().sender(t.Src)
	if !known || !t.Dst.Is4() || t.ID != 0 && !p.config.AnyNetwork || !from.maySend(inner) {
		return hop, false
	}
	if _, ok := p.hook.ways.To(t.Src); !ok { // a packet of IPsec, too, comes in another way
		return hop, false
	}
	return OuterShown(p.config.Kind, t), true
}

// OuterShown is what the kernel's programs find in outer headers of a kind, in packets that
// came with t over IPv4.
func OuterShown(kind tunnel.Kind, t *packet.Tunnel) (hop ports.OffloadHop) {
	dst := t.Dst.As4()
	copy(hop[:], dst[:])
	binary.BigEndian.PutUint16(hop[4:], kind.Port())
	kind.Init(hop[8:], uint32(t.ID))
	return hop
}

// OffloadWay implements ports.OffloadTunnel.
func (p *Port) OffloadWay(inner []byte, t *packet.Tunnel) (w ports.OffloadWay, ok bool) {
	dst := t.Dst.Unmap()
	if _, silent := (*p.silent.Load())[dst]; silent || !dst.Is4() || !p.sendsTo(dst) {
		return w, false
	}
	way, ok := p.hook.ways.To(dst)
	if !ok {
		return w, false
	}
	inside := way.MTU - p.config.Kind.Overhead(false)
	w.Link, w.GRE = way.Link, p.config.Kind == tunnel.KindGRE
	w.MaxFrame = min(ports.MaxFrame(p.config.MTU), inside+packet.EthernetLen, longestOffloaded)
	putHop(&w.Hop, way.Hop)
	w.Outer = p.outer(inner, dst, uint32(t.ID))
	return w, true
}

// putHop writes struct bpf_redir_neigh.
func putHop(to *ports.OffloadHop, hop netip.Addr) {
	a := hop.As4()
	binary.NativeEndian.PutUint32(to[:], unix.AF_INET)
	copy(to[4:], a[:])
}

// outer is the headers in front of the inner IP packet, from the socket's port that this
// port itself would send by.
func (p *Port) outer(inner []byte, dst netip.Addr, id uint32) ports.OffloadOuter {
	l := packet.ParseLayers(inner)
	from := netip.AddrPortFrom(p.config.Local, p.SourcePort(tunnel.FlowHash(inner, &l)))
	return OuterOf(p.config.Kind, from, dst, id, inner)
}

// OuterOf is the headers that the kernel's programs write in front of an IP packet, for a
// tunnel over IPv4. The packet's frame begins as inner.
func OuterOf(kind tunnel.Kind, from netip.AddrPort, dst netip.Addr, id uint32, inner []byte) (to ports.OffloadOuter) {
	to[12], to[13] = packet.EtherTypeIPv4>>8, packet.EtherTypeIPv4&0xff
	ip := packet.IPv4(to[packet.EthernetLen:][:packet.IPv4Len])
	ip.Init()
	ip.SetFlagsOffset(packet.IPv4DontFragment)
	ip.SetTTL(outerTTL)
	ip.SetProto(kind.Proto())
	ip.SetSrc(from.Addr())
	ip.SetDst(dst)
	sum := packet.Sum(ip, 0)
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	head := to[packet.EthernetLen+packet.IPv4Len:]
	if kind.Port() != 0 {
		udp := packet.UDP(head)
		udp.SetSrcPort(from.Port())
		udp.SetDstPort(kind.Port())
		head = head[packet.UDPLen:]
	}
	kind.Init(head, id)
	copy(head[tunnel.HeaderLen:], inner[:packet.EthernetLen])
	return to
}

// outerTTL is that of packets of Linux.
const outerTTL = 64
