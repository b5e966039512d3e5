package halfopen

import (
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// userOf is the uid at the other end of a unix socket.
func userOf(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return "unknown"
	}
	var cred *unix.Ucred
	if raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return "unknown"
	}
	return "uid " + strconv.Itoa(int(cred.Uid))
}
