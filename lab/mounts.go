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

// Named namespaces under more than one mount. The file of a namespace is nothing: the
// namespace is mounted over it. When /run/netns is mounted over itself later, as ip netns
// and container runtimes do, that mount stays below, where no path leads, and the file
// cannot be removed because something is mounted on it.

// hiddenInode is the namespace that is mounted on a path, whatever lies over it; 0 for
// none. The kernel names it in /proc/self/mountinfo, as net:[4026532281].
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

// mostMounts is how many mounts over one another are taken away.
const mostMounts = 64

// unmountAll takes away what is mounted on a path, as far as the path leads there.
func unmountAll(path string) error {
	for range mostMounts {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // nothing is mounted there, or there is nothing
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d mounts", mostMounts)
}

// removeBelow removes a namespace's file that something is mounted on where no path
// leads. It does so in a mount namespace of its own: there it can take the mounts over
// dir away, for nobody else sees that. The kernel then detaches what was mounted on the
// file everywhere.
func removeBelow(dir, path string) error {
	done := make(chan error)
	go runRemoveBelow(dir, path, done)
	return <-done
}

// runRemoveBelow keeps its thread, which ends with it: nobody else may run in its mount
// namespace.
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
