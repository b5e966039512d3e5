package switchd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ErrRunning is returned if a process answers at a socket.
var ErrRunning = errors.New("an agent is running")

// longestSocket is the longest path of a socket in bytes: sun_path of unix(7), less the NUL
// behind it.
const longestSocket = 107

// Listen opens a unix socket with mode 0600: only processes that may open it can reach the
// switch. It makes the socket under another name and moves it into place once its mode is right,
// so others can never connect. It replaces a socket that a killed agent left, and refuses one
// that a process still answers on.
func Listen(path string) (net.Listener, error) {
	if err := free(path); err != nil {
		return nil, err
	}
	return ReplaceSocket(path)
}

// ReplaceSocket opens a socket. It replaces another one, if there is one.
func ReplaceSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if over := len(fresh) - longestSocket; over > 0 {
		return nil, fmt.Errorf("%s: the path of a socket is %d bytes too long (unix(7)): choose a shorter directory", path, over)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // it would unlink the other name
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		return nil, errors.Join(err, ln.Close(), os.Remove(fresh))
	}
	return ln, nil
}

// free reports whether the path is free: nothing is there, or a socket that no process answers
// on.
func free(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("%w already: it answers at %s", ErrRunning, path)
	}
	return nil
}
