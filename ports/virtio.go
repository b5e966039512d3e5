package ports

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// In the virtio-net header, the kernel and a driver describe the undone work of a frame, on
// packet sockets and taps. It is described in virtio 1.2, section 5.1.6, and is struct
// virtio_net_hdr of linux/virtio_net.h. Its numbers are in the machine's byte order there.
//
//	flags   u8   1: the checksum is to be filled in
//	gso     u8   what to segment as; 0x80: the first segment has CWR
//	hdr_len u16  bytes of headers, for segmentation
//	gso_size u16, csum_start u16, csum_offset u16

// VirtioLen is the header's length in bytes.
const VirtioLen = 10

const (
	virtioNeedsChecksum = 1

	virtioTCP4 = 1
	virtioTCP6 = 4
	virtioUDP  = 5 // to datagrams, not to fragments
	virtioECN  = 0x80
)

// ReadVirtio reads the first VirtioLen bytes of h into f's offload state. It reports false for an
// unknown kind of segmentation.
func ReadVirtio(f *packet.Frame, h []byte) bool {
	num := binary.NativeEndian.Uint16
	f.Offload = packet.Offload{}
	switch h[1] &^ virtioECN {
	case 0:
	case virtioTCP4, virtioTCP6, virtioUDP:
		if f.Offload.SegmentSize = num(h[4:]); f.Offload.SegmentSize == 0 {
			return false
		}
	default:
		return false
	}
	if h[0]&virtioNeedsChecksum != 0 {
		f.Offload.ChecksumPartial = true
		f.Offload.ChecksumStart, f.Offload.ChecksumOffset = num(h[6:]), num(h[8:])
	}
	return true
}

// PutVirtio writes f's offload state into the first VirtioLen bytes of h. Refusal has accepted
// that state.
func PutVirtio(h []byte, f *packet.Frame) {
	clear(h[:VirtioLen])
	o := &f.Offload
	if o.ChecksumPartial {
		h[0] = virtioNeedsChecksum
		binary.NativeEndian.PutUint16(h[6:], o.ChecksumStart)
		binary.NativeEndian.PutUint16(h[8:], o.ChecksumOffset)
	}
	if o.SegmentSize == 0 {
		return
	}
	binary.NativeEndian.PutUint16(h[4:], o.SegmentSize)
	b := f.Bytes()
	l := packet.ParseLayers(b)
	headers := l.L4 + packet.UDPLen
	h[1] = virtioUDP
	if l.Proto == packet.ProtoTCP && l.L4 != 0 {
		tcp := packet.TCP(b[l.L4:])
		headers = l.L4 + tcp.HeaderLen()
		h[1] = virtioTCP4
		if l.EtherType == packet.EtherTypeIPv6 {
			h[1] = virtioTCP6
		}
		if tcp.Flags()&packet.TCPCwr != 0 {
			h[1] |= virtioECN
		}
	}
	binary.NativeEndian.PutUint16(h[2:], uint16(headers))
}
