package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Named namespaces under more than one mount. A namespace is mounted over its file. Later,
// ip netns or a container runtime may mount /run/netns over itself. Then the namespace's
// mount is hidden, no path leads to it, and the file cannot be removed, because it is a
// mount point.

// hiddenInode is the namespace that is mounted on a path below other mounts; 0 for none.
// The kernel names it in /proc/self/mountinfo, as net:[4026532281].
func hiddenInode(path string) uint64 {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		fields := strings.Fields(string(line)) // proc(5): ID, parent, major:minor, root, mount point
		if len(fields) < 5 || fields[4] != path {
			continue
		}
		number, found := strings.CutPrefix(strings.TrimSuffix(fields[3], "]"), "net:[")
		if inode, err := strconv.ParseUint(number, 10, 64); found && err == nil {
			return inode
		}
	}
	return 0
}

// mostMounts is the most mounts on one path that are removed.
const mostMounts = 64

// unmountAll removes the mounts on a path that are not hidden.
func unmountAll(path string) error {
	for range mostMounts {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // nothing is mounted there, or there is no file
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d mounts", mostMounts)
}

// removeBelow removes a namespace's file below a hidden mount. It unmounts dir in a mount
// namespace of its own, where no other process sees that. When the file goes, the kernel
// detaches the mounts on it everywhere.
func removeBelow(dir, path string) error {
	done := make(chan error)
	go runRemoveBelow(dir, path, done)
	return <-done
}

// runRemoveBelow ends with its thread locked, so that the thread ends, too: no other
// goroutine may run in its mount namespace.
func runRemoveBelow(dir, path string, done chan<- error) {
	runtime.LockOSThread()
	done <- func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for range mostMounts {
			if err := unmountAll(path); err != nil {
				return err
			}
			if err := os.Remove(path); !errors.Is(err, unix.EBUSY) {
				return err
			}
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				return err
			}
		}
		return fmt.Errorf("more than %d mounts at %s", mostMounts, dir)
	}()
}
