package afxdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// register registers the UMEM's memory with the kernel under this socket (XDP_UMEM_REG). Each
// sent frame has requests bytes in front, for a request to the kernel.
func (u *UMEM) register(fd, requests int) error {
	reg := unix.XDPUmemReg{
		Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(u.memory)))),
		Len:  uint64(len(u.memory)),
		Size: FrameSize,
	}
	if requests > 0 {
		reg.Tx_metadata_len, reg.Flags = uint32(requests), unix.XDP_UMEM_TX_METADATA_LEN
	}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	if errno != 0 {
		return fmt.Errorf("register the UMEM: %w", errno)
	}
	return nil
}

// getsockopt reads a socket option of level SOL_XDP into v. An older kernel may fill only part of
// v.
func getsockopt[T any](fd, option int, v *T) error {
	size := uint32(unsafe.Sizeof(*v))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// heldIn is a set of frames over memory whose length is a multiple of 8 bytes.
func heldIn(memory []byte) held {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)
}

// mapRing maps a ring of size slots at one of the kernel's page offsets. The kernel gives the
// offsets of the words and the slots.
func mapRing[T any](fd int, page int64, at unix.XDPRingOffset, size int) (ring[T], error) {
	var slot T
	length := int(at.Desc) + size*int(unsafe.Sizeof(slot))
	memory, err := unix.Mmap(fd, page, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring[T]{}, fmt.Errorf("map a ring of %d: %w", size, err)
	}
	base := unsafe.Pointer(unsafe.SliceData(memory))
	return ring[T]{
		producer: (*uint32)(unsafe.Add(base, at.Producer)),
		consumer: (*uint32)(unsafe.Add(base, at.Consumer)),
		flags:    (*uint32)(unsafe.Add(base, at.Flags)),
		slots:    unsafe.Slice((*T)(unsafe.Add(base, at.Desc)), size),
		mask:     uint32(size - 1),
		memory:   memory,
	}, nil
}
