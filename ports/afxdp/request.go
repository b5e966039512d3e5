package afxdp

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// A veth hands frames over as the pod's kernel left them. The checksum holds only the sum
// of the pseudo-header, and nothing says so, because XDP has no place for it. Such a
// frame is recognised by that sum (packet.FindPartial). On its way out by AF_XDP, a
// request in front of it (struct xsk_tx_metadata of linux/if_xdp.h) tells the kernel what
// is undone:
//
//	flags        u64  XDP_TXMD_FLAGS_CHECKSUM
//	csum_start   u16  from the frame's first byte
//	csum_offset  u16  from csum_start
//	launch_time  u64  not used
//
// A kernel that copies the frame does what the device does not. A card without copies
// would ignore the request when its driver does, so it gets none.

// requestLen is the length of the struct in bytes.
const requestLen = 24

const _ = uint(kernelHeadroom - requestLen) // does not compile when too short

// putRequest writes the request for a frame's checksum in front of it. It
// returns the option of the frame's descriptor.
func putRequest(f *packet.Frame) uint32 {
	if !f.Offload.ChecksumPartial {
		return 0
	}
	r := f.Buffer()[f.Headroom()-requestLen : f.Headroom()]
	clear(r)
	binary.NativeEndian.PutUint64(r, unix.XDP_TXMD_FLAGS_CHECKSUM)
	binary.NativeEndian.PutUint16(r[8:], f.Offload.ChecksumStart)
	binary.NativeEndian.PutUint16(r[10:], f.Offload.ChecksumOffset)
	return unix.XDP_TX_METADATA
}
