package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/internal/reaptest"
	"golang.org/x/sys/unix"
)

// hiddenEnv turns this test binary into the process that TestHiddenNamespaces starts.
const hiddenEnv = "ANTRAIL_TEST_HIDDEN_NAMESPACES"

// TestHiddenNamespaces: Down removes a lab and its processes after /run/netns was mounted
// over itself, with and without the namespaces' mounts below. This happens in a mount
// namespace of its own, whose /run/netns is empty.
func TestHiddenNamespaces(t *testing.T) {
	needRoot(t)
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]uintptr{"without": unix.MS_BIND, "with": unix.MS_BIND | unix.MS_REC} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", hiddenEnv, flags), stateEnv+"="+reaptest.LabDir(t))
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // exec makes its mounts private
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// testHidden makes a lab, hides its namespaces, and removes the lab.
func testHidden() {
	if err := hideAndTakeDown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func hideAndTakeDown() error {
	var flags uintptr
	if _, err := fmt.Sscan(os.Getenv(hiddenEnv), &flags); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", netnsDir, "tmpfs", 0, ""); err != nil {
		return err
	}
	os.Unsetenv(hiddenEnv) // the agents are this binary, too
	l, err := newState(StateDir(), State{})
	if err != nil {
		return err
	}
	ns := l.namespace("web-a")
	if err := ns.create(); err != nil {
		return err
	}
	inode := ns.inode()
	sleep := exec.Command("sleep", "1000")
	if err := ns.Do(sleep.Start); err != nil {
		return err
	}
	defer sleep.Process.Kill()
	ended := make(chan error, 1)
	go func() { ended <- sleep.Wait() }()
	for range 2 {
		if err := unix.Mount(netnsDir, netnsDir, "", flags, ""); err != nil {
			return err
		}
	}
	if got := ns.inode(); got != inode || inode == 0 {
		return fmt.Errorf("the hidden namespace is %d, not %d", got, inode)
	}
	if err := l.Down(); err != nil {
		return err
	}
	<-ended
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(mounts), ns.Path()) {
		return fmt.Errorf("still mounted:\n%s", mounts)
	}
	return err
}
