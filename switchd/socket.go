package switchd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/internal/unixsocket"
)

// ErrRunning is returned if a process answers at a socket.
var ErrRunning = errors.New("an agent is running")

// Listen opens a unix socket with mode 0600, so only its owner can reach the switch. It replaces
// the socket of an ended process. The error is ErrRunning if a process answers there.
func Listen(path string) (net.Listener, error) {
	answers, err := unixsocket.Answers(path)
	if answers {
		err = fmt.Errorf("%w already: it answers at %s", ErrRunning, path)
	}
	if err != nil {
		return nil, err
	}
	return ReplaceSocket(path)
}

// ReplaceSocket is Listen in place of any socket. It creates the directory.
func ReplaceSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return unixsocket.Replace(path, 0o600)
}
