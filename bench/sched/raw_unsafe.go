package sched

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Raw system calls read and write the ends of connections and the sockets of the bare forwarder.
// Go's scheduler does not see a raw call.
//
// Why: of other blocking calls a thread of Go's takes note, which wakes up every 20 µs and hands their
// processors on. On two processors that takes a tenth of a stream from the forwarder in user space.
//
// What it costs:
//
//   - A raw call keeps one of Go's processors, so the caller needs more of them (LendProcessors).
//   - The garbage collector stops a goroutine by signals to its thread. The call must return when a
//     signal comes, so its socket needs a timeout. The goroutine then lets itself be stopped.

// RawRead is read(2) into b, which must not be empty. Its errors are of type unix.Errno.
func RawRead(fd int, b []byte) (int, error) { return raw(unix.SYS_READ, fd, b) }

// RawWrite is write(2) of b, which must not be empty. Its errors are of type unix.Errno.
func RawWrite(fd int, b []byte) (int, error) { return raw(unix.SYS_WRITE, fd, b) }

func raw(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno == unix.EINTR {
		runtime.Gosched()
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// LendProcessors raises GOMAXPROCS by n until giveBack is called.
func LendProcessors(n int) (giveBack func()) {
	had := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(had + n)
	return func() { runtime.GOMAXPROCS(had) }
}
