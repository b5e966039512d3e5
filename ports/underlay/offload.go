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

// The kernel carries established connections by itself (ports/offload). Programs of pods' ports
// add outer headers, and a program at the link of the Node's address removes them. This port
// supplies the headers to add, and the headers that it would accept. Before its answer changes,
// it has the kernel's connections withdrawn.
//
// A bpf_link attaches the program, so it is removed when the last process that has the port
// closes it or is killed.

// longestOffloaded is the longest inner IP packet that needs no segmentation. The kernel makes no
// room in front of more than 16 kB.
const longestOffloaded = 16000

// openHook attaches the program of the configuration, or keeps the given one. There may be
// neither.
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

// inheritHook takes the program's link, which is the last descriptor if it is present.
func (p *Port) inheritHook(fds []int) ([]int, error) {
	n := len(fds) - 1
	if n < 0 {
		return fds, nil
	}
	if _, err := unix.Getsockname(fds[n]); !errors.Is(err, unix.ENOTSOCK) {
		return fds, nil
	}
	l, err := link.NewFromFD(fds[n])
	if err != nil { // NewFromFD has closed it
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

// closeHook detaches the program, if no other process has it.
func (p *Port) closeHook() error {
	p.hook.ways.Close()
	if p.hook.link == nil {
		return nil
	}
	return p.hook.link.Close()
}

// OffloadFrom implements ports.OffloadTunnel.
func (p *Port) OffloadFrom(inner []byte, t *packet.Tunnel) (w ports.OffloadWay, ok bool) {
	from, known := p.peers.Load().sender(t.Src)
	if !known || t.ID != uint64(p.config.Network) && !p.config.AnyNetwork || !from.maySend(inner) {
		return w, false
	}
	if _, ok := p.hook.ways.To(t.Src); !ok { // a packet of IPsec also arrives in another way
		return w, false
	}
	return WayFrom(p.config.Kind, t, inner), true
}

// WayFrom is the headers that the kernel's programs find in front of an IP packet from a tunnel
// with t. The packet's frame begins as inner.
func WayFrom(kind tunnel.Kind, t *packet.Tunnel, inner []byte) ports.OffloadWay {
	const anyPort = 0 // of the sender
	return ports.OffloadWay{
		Parts: kindParts(kind, t.Dst) | ports.OffloadUnwrap,
		Outer: outerOf(kind, netip.AddrPortFrom(t.Src, anyPort), t.Dst, uint32(t.ID), inner),
	}
}

// kindParts is the parts for a kind of tunnel to an address.
func kindParts(kind tunnel.Kind, dst netip.Addr) (parts ports.OffloadParts) {
	if kind == tunnel.KindGRE {
		parts |= ports.OffloadGRE
	}
	if dst.Is6() {
		parts |= ports.OffloadOver6
	}
	return parts
}

// OffloadWay implements ports.OffloadTunnel.
func (p *Port) OffloadWay(inner []byte, t *packet.Tunnel) (w ports.OffloadWay, ok bool) {
	dst := t.Dst.Unmap()
	if _, silent := (*p.silent.Load())[dst]; silent || !p.sendsTo(dst) {
		return w, false
	}
	way, ok := p.hook.ways.To(dst)
	if !ok {
		return w, false
	}
	l := packet.ParseLayers(inner)
	from := netip.AddrPortFrom(p.config.Local, p.SourcePort(tunnel.FlowHash(inner, &l)))
	w = WayTo(p.config.Kind, from, dst, uint32(t.ID), inner)
	inside := way.MTU - p.config.Kind.Overhead(dst.Is6())
	w.Link = way.Link
	w.MaxFrame = min(ports.MaxFrame(p.config.MTU), inside+packet.EthernetLen, longestOffloaded)
	putHop(&w.Hop, way.Hop)
	return w, true
}

// putHop writes struct bpf_redir_neigh.
func putHop(to *ports.OffloadHop, hop netip.Addr) {
	family := uint32(unix.AF_INET)
	if hop.Is6() {
		family = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(to[:], family)
	copy(to[4:], hop.AsSlice())
}

// WayTo is the headers that the kernel's programs add to an IP packet. They use the source port
// that this port itself would use. The packet's frame begins as inner.
func WayTo(kind tunnel.Kind, from netip.AddrPort, dst netip.Addr, id uint32, inner []byte) ports.OffloadWay {
	return ports.OffloadWay{Parts: kindParts(kind, dst) | ports.OffloadWrap, Outer: outerOf(kind, from, dst, id, inner)}
}

func outerOf(kind tunnel.Kind, from netip.AddrPort, dst netip.Addr, id uint32, inner []byte) (to ports.OffloadOuter) {
	head := to[packet.IPv6Len:]
	if dst.Is4() {
		head = to[packet.IPv4Len:]
		outer4(packet.IPv4(to[:packet.IPv4Len]), kind, from.Addr(), dst)
	} else {
		l := packet.ParseLayers(inner)
		outer6(packet.IPv6(to[:packet.IPv6Len]), kind, from.Addr(), dst, tunnel.FlowHash(inner, &l))
	}
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

// outerTTL is Linux's default TTL.
const outerTTL = 64

func outer4(h packet.IPv4, kind tunnel.Kind, src, dst netip.Addr) {
	h.Init()
	h.SetFlagsOffset(packet.IPv4DontFragment)
	h.SetTTL(outerTTL)
	h.SetProto(kind.Proto())
	h.SetSrc(src)
	h.SetDst(dst)
	sum := packet.Sum(h, 0)
	h[10], h[11] = byte(sum>>8), byte(sum)
}

// outer6 labels flows by their hash, because routers see no ports of GRE (RFC 6438).
func outer6(h packet.IPv6, kind tunnel.Kind, src, dst netip.Addr, hash uint32) {
	h.SetFirst(0, hash)
	h.SetNextHeader(kind.Proto())
	h.SetHopLimit(outerTTL)
	h.SetSrc(src)
	h.SetDst(dst)
}
