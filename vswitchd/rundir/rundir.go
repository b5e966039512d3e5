// Package rundir has the files by which Open vSwitch's tools find daemons: sockets, pid files and
// locks in /var/run/openvswitch.
package rundir

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/antrail/antrail/internal/unixsocket"
)

// Listen opens a unix socket that its owner and group may connect to, as Open vSwitch's do. It
// replaces the socket of an ended process. If a process answers there, Listen refuses.
func Listen(path string) (net.Listener, error) {
	answers, err := unixsocket.Answers(path)
	if answers {
		err = fmt.Errorf("%s: another process answers there: stop it first", path)
	}
	if err != nil {
		return nil, err
	}
	return unixsocket.Replace(path, 0o750)
}

// Lock opens a file and locks it (fcntl(2)) until the process ends. If another process has the lock,
// the error names that process. The process must not open the file again, because closing any
// descriptor of the file releases the lock.
func Lock(path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	want := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &want); err != nil {
		holder := want
		_ = syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &holder)
		return nil, errors.Join(fmt.Errorf("%s: process %d has the lock: stop it first", path, holder.Pid), f.Close())
	}
	return f, nil
}

// PIDFile writes the pid file of a daemon and locks it, because ovs-appctl only trusts a locked file.
// remove closes and removes it.
func PIDFile(dir, daemon string) (remove func() error, err error) {
	path := filepath.Join(dir, daemon+".pid")
	f, err := Lock(path, 0o644)
	if err != nil {
		return nil, err
	}
	text := strconv.Itoa(os.Getpid()) + "\n"
	_, err = f.WriteAt([]byte(text), 0)
	if err = errors.Join(err, f.Truncate(int64(len(text)))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
}

// ControlSocket is the path of the control socket of a daemon in this process.
func ControlSocket(dir, daemon string) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.ctl", daemon, os.Getpid()))
}

// RemoveStale removes the control sockets of a daemon whose processes have ended.
func RemoveStale(dir, daemon string) error {
	all, err := filepath.Glob(filepath.Join(dir, daemon+".*.ctl"))
	for _, path := range all {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), daemon+"."), ".ctl")
		pid, bad := strconv.Atoi(name)
		if bad == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
