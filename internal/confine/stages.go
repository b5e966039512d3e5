//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// descend is stage 1. It returns only an error.
func (r request) descend() error {
	runtime.LockOSThread() // mounts, bounding set and no_new_privs are of this thread
	if err := r.mounts(); err != nil {
		if !r.WithoutMounts || !errors.Is(err, unix.EPERM) {
			return err
		}
		r.Missing = append(r.Missing, fmt.Sprintf("no mount namespace: what user %d may write or open on this machine, the program may, too (%v)", r.UID, err))
	}
	if err := os.Chdir(r.State); err != nil { // into the writable mount
		return fmt.Errorf("change to the state directory: %w", err)
	}
	if err := r.change(); err != nil {
		return err
	}
	r.Stage = 2
	text, err := r.text()
	if err != nil {
		return err
	}
	// The link leads to the program even where the user cannot search its directory.
	return fmt.Errorf("execute the program again: %w", syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), text)))
}

// mounts makes all mounts read-only and without devices, except for the state
// directory, which stays writable but holds no program that can be executed.
func (r request) mounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount(r.State, r.State, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", r.State, err)
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return fmt.Errorf("read-only mounts: %w", err)
	}
	state := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC, Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, r.State, 0, &state); err != nil {
		return fmt.Errorf("writable %s: %w", r.State, err)
	}
	return nil
}

// change gives up all capabilities and becomes the user. The bounding set comes first:
// it takes CAP_SETPCAP.
func (r request) change() error {
	have, err := readCapabilities()
	if err != nil {
		return err
	}
	have.bounding = 0
	if err := have.write(); err != nil {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if err := syscall.Setresgid(r.GID, r.GID, r.GID); err != nil {
		return fmt.Errorf("group %d: %w", r.GID, err)
	}
	if err := syscall.Setresuid(r.UID, r.UID, r.UID); err != nil {
		return fmt.Errorf("user %d: %w", r.UID, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := (capabilities{}).write(); err != nil {
		return err
	}
	if err := unix.Access(".", unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("state directory %s: user %d may not write there: %w", r.State, r.UID, err)
	}
	return nil
}

// settle is stage 2.
func settle() error {
	have, err := readCapabilities()
	if err != nil {
		return err
	}
	if have.effective|have.permitted|have.inheritable != 0 || os.Getuid() == 0 {
		return fmt.Errorf("user %d with capabilities %x: want another than root, and none: start the program by Command", os.Getuid(), have)
	}
	// Processes of the same user can neither trace this one nor read its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	return install(compile(allowed(uint32(os.Getpid()))))
}
