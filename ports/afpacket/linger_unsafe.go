package afpacket

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// When a process ends, it closes one packet socket after the other. For each it waits until no
// packet runs on any processor (packet_release, synchronize_net), which takes 12 ms and more. Its
// successor cannot begin until then.
//
// Instead, a ring of io_uring (io_uring_setup(2)) has the socket among its files, and is used for
// nothing else. A kernel worker destroys the ring later. The process has ended by then.

const (
	ringParameters = 120 // bytes of struct io_uring_params
	registerFiles  = 2   // IORING_REGISTER_FILES
)

// linger makes the kernel close a socket later, after the process has ended. The ring is a
// descriptor, to be closed before the socket; -1 if io_uring is not allowed.
func linger(socket int) (ring int) {
	var parameters [ringParameters]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
	if errno != 0 {
		return -1
	}
	ring = int(fd)
	file := int32(socket)
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, fd, registerFiles, uintptr(unsafe.Pointer(&file)), 1, 0, 0); errno != 0 {
		unix.Close(ring)
		return -1
	}
	return ring
}

// closeNow closes a ring. After that, closing the socket closes it at once.
func closeNow(ring int) error {
	const unregisterFiles = 3 // IORING_UNREGISTER_FILES
	if ring < 0 {
		return nil
	}
	unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(ring), unregisterFiles, 0, 0, 0, 0)
	return unix.Close(ring)
}
