package afxdp

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// A veth passes frames on as the pod's kernel left them. The checksum holds only the sum of the
// pseudo-header, and XDP has no mark for that. The port recognises such a frame by that sum
// (packet.FindPartial). When the frame leaves by AF_XDP, a request in front of it (struct
// xsk_tx_metadata of linux/if_xdp.h) tells the kernel the undone work:
//
//	flags        u64  XDP_TXMD_FLAGS_CHECKSUM
//	csum_start   u16  from the frame's first byte
//	csum_offset  u16  from csum_start
//	launch_time  u64  not used
//
// A kernel that copies the frame does the work that the device cannot. A card without copies
// ignores the request if its driver does, so it gets none.

// requestLen is the length of the struct in bytes.
const requestLen = 24

const _ = uint(kernelHeadroom - requestLen) // does not compile if too short

// putRequest writes the request for a frame's checksum in front of the frame. It returns the
// option for the frame's descriptor.
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
