// Package rundir keeps the files by which Open vSwitch's tools find daemons: sockets, pid
// files and locks in /var/run/openvswitch.
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

// Lock opens a file and takes a lock (fcntl(2)) on it, which goes with the process. If another
// process has the lock, Lock names it. The process must not open the file again: to close any
// descriptor of the file gives up the lock.
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

// PIDFile writes the pid file of a daemon and locks it: ovs-appctl trusts only a file that its
// process holds locked. remove closes and removes it.
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

// ControlSocket is where a daemon of this process takes commands of ovs-appctl.
func ControlSocket(dir, daemon string) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.ctl", daemon, os.Getpid()))
}

// RemoveStale removes control sockets of a daemon whose processes are gone.
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
