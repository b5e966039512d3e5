//go:build linux && (amd64 || arm64)

// Package confine starts a program without privilege. The parent is root. It opens what needs
// privilege and hands descriptors over. The program reaches main as an ordinary user, with no
// capability and with no_new_privs. In its mount namespace only the state directory is writable,
// and no device can be opened. Enter then installs a seccomp filter in all threads. A process
// that another program has started without privilege, such as one in a container, calls Self.
//
// Two stages run in the child, both of them in Enter:
//
//  1. As root, it makes the mounts, empties the bounding set, changes the user and
//     executes the same program again. execve carries the state of one thread over, so
//     no other thread of the Go runtime keeps a capability.
//
//  2. As the user, it checks what stage 1 left and installs the filter.
//
//     confine.go         options, the command, and Enter
//     stages.go          what each stage does
//     capabilities.go    a thread's capabilities; Keep, for a program that needs some
//     calls.go           the system calls that are allowed, by purpose
//     calls_amd64.go     those of one machine
//     calls_arm64.go     those of the other
//     syscallfilter.go   the list as a program of the kernel's
//     install_unsafe.go  the call that installs it
//
// The environment variable that selects the stage needs no secret. A caller that can set it
// controls the program anyway, and each stage only removes privilege.
package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable holds the stage and the options, as JSON.
const variable = "ANTRAIL_CONFINE"

// Options describe the confinement of a program.
type Options struct {
	// State is the absolute path of the only directory that the program may write to.
	// It belongs to UID, and is the program's working directory: relative names work
	// there even if UID may not search the directories above.
	State string
	// UID and GID are those of the program, above 0. It has no other group.
	UID, GID int
	// WithoutMounts lets the program run if the kernel refuses a mount namespace, as it
	// does to root in a container without CAP_SYS_ADMIN. Enter then reports it as missing.
	WithoutMounts bool
}

// A Confinement is what the process runs under.
type Confinement struct {
	State   string   // the directory that is writable
	Missing []string // each sentence names a protection that the kernel refused
}

// request is what a stage reads from the environment.
type request struct {
	Options
	Stage   int
	Missing []string
}

// Command returns a command that runs the program confined. The program has to call
// Enter first in main. Callers add standard files and ExtraFiles, and start it as root.
func Command(o Options, name string, args ...string) (*exec.Cmd, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	text, err := request{Options: o, Stage: 1}.text()
	if err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), text)
	return c, nil
}

// check says why the options cannot be met.
func (o Options) check() error {
	if o.UID <= 0 || o.GID <= 0 {
		return fmt.Errorf("user %d and group %d: both must be above 0", o.UID, o.GID)
	}
	if !filepath.IsAbs(o.State) || filepath.Clean(o.State) == "/" {
		return fmt.Errorf("state directory %q: want an absolute path below /", o.State)
	}
	at, err := os.Stat(o.State)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	owner, is := at.Sys().(*syscall.Stat_t)
	if !at.IsDir() || !is || int(owner.Uid) != o.UID {
		return fmt.Errorf("state directory %s: want a directory that belongs to user %d: create it and chown it", o.State, o.UID)
	}
	return nil
}

func (r request) text() (string, error) {
	b, err := json.Marshal(r)
	return variable + "=" + string(b), err
}

// Enter confines the process if Command started it. It returns nil if it did not. The
// program calls Enter before anything else in main, and exits on an error. In stage 1
// Enter does not return unless it fails.
func Enter() (*Confinement, error) {
	text, is := os.LookupEnv(variable)
	if !is {
		return nil, nil
	}
	var r request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("confine: %s=%s: %w", variable, text, err)
	}
	if err := os.Unsetenv(variable); err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	switch r.Stage {
	case 1:
		return nil, fmt.Errorf("confine: as root: %w", r.descend())
	case 2:
		if err := settle(); err != nil {
			return nil, fmt.Errorf("confine: as user %d: %w", r.UID, err)
		}
		return &Confinement{State: r.State, Missing: r.Missing}, nil
	}
	return nil, errors.New("confine: stage is neither 1 nor 2: " + text)
}

// Self confines the process, which was started without privilege, as in a container: as
// another user than root, and with no capability. It installs the filter in all threads.
// The bounding set and the mounts stay as the parent left them.
func Self() error {
	runtime.LockOSThread() // no_new_privs is set for one thread, and the filter passes it to the others
	defer runtime.UnlockOSThread()
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = settle()
	}
	if err != nil {
		return fmt.Errorf("confine: as user %d: %w", os.Getuid(), err)
	}
	return nil
}
