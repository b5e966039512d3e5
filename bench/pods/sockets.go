package pods

import (
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// blockingDescriptor duplicates a connection's descriptor in blocking mode, and closes the connection's
// own. Reads and writes of it time out after a second. Go's poller must not watch the connection: each
// packet would wake the poller's thread, on a processor that an end or a switch needs.
func blockingDescriptor(c *net.TCPConn) (int, error) {
	f, err := c.File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(makeBlocking(fd, time.Second), c.Close()); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// makeBlocking makes reads and writes of a socket wait in the kernel. They time out, so a signal ends
// them, too.
func makeBlocking(fd int, timeout time.Duration) error {
	limit := unix.NsecToTimeval(int64(timeout))
	return errors.Join(unix.SetNonblock(fd, false),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
}

// transferByte reads or writes one byte by call. If a signal interrupts the call, it repeats it,
// for one second in all. Go's own signals come every 10 ms, and each repeated call may wait a
// whole second.
func transferByte(call func(int, []byte) (int, error), fd int, b []byte) error {
	for interrupted := (time.Time{}); ; {
		n, err := call(fd, b)
		if err == unix.EINTR {
			if interrupted.IsZero() {
				interrupted = time.Now()
			}
			if time.Since(interrupted) < time.Second {
				continue
			}
		}
		if err == nil && n != 1 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
}
