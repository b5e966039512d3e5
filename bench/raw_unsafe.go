package bench

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ends of connections, and the sockets of the bare forwarder, are read and written
// by system calls that Go's scheduler is not told of. Of others that block it takes
// note by a thread that wakes up every 20 µs, and hands their processors on: on two
// processors that is a tenth of a stream, taken from whoever forwards it in user space. What it costs: such a call
// keeps one of Go's processors, so there have to be more of them (lend). Who stops
// all goroutines, the garbage collector for one, sends its thread signals: the call
// has to end by them (blocking), and the goroutine then has to let itself be stopped.

// rawRead is read(2) into b, which is not empty.
func rawRead(fd int, b []byte) (int, error) { return raw(unix.SYS_READ, fd, b) }

// rawWrite is write(2) of b, which is not empty.
func rawWrite(fd int, b []byte) (int, error) { return raw(unix.SYS_WRITE, fd, b) }

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

// lend gives Go n processors more than it has, until they are given back.
func lend(n int) (giveBack func()) {
	had := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(had + n)
	return func() { runtime.GOMAXPROCS(had) }
}
