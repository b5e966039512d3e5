// Package unixsocket opens unix sockets at which daemons listen.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// longest is the longest path of a socket in bytes: sun_path of unix(7), less the NUL behind it.
const longest = 107

// answerTime is how long Answers waits for a connection.
const answerTime = time.Second

// Answers reports whether a process listens at a path. A path without a file, and a socket of a
// process that has ended, are free. The error is for a file that is not a socket, and for a
// socket that this process cannot connect to.
func Answers(path string) (bool, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && st.Mode().Type() != os.ModeSocket {
		err = fmt.Errorf("%s is there and is not a socket", path)
	}
	if err != nil {
		return false, err
	}
	c, err := net.DialTimeout("unix", path, answerTime)
	switch {
	case err == nil:
		return true, c.Close()
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded): // its queue of connections is full
		return true, nil
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}

// Replace listens at a path, in place of any socket there. The socket gets its mode under another
// name before it is moved into place, so processes that the mode excludes can never connect.
func Replace(path string, mode os.FileMode) (net.Listener, error) {
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if over := len(fresh) - longest; over > 0 {
		return nil, fmt.Errorf("%s: the path of a socket is %d bytes too long (unix(7)): choose a shorter directory", path, over)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // it would unlink the other name
	if err := errors.Join(os.Chmod(fresh, mode), os.Rename(fresh, path)); err != nil {
		return nil, errors.Join(err, ln.Close(), os.Remove(fresh))
	}
	return ln, nil
}
