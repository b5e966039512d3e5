package reaptest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// leavesEnv has TestLeaves leave something.
const leavesEnv = "ANTRAIL_TEST_LEAVES"

// TestLeaves is a test that is interrupted: with a lab's namespace and directory, a
// namespace of its own, and in each a process that nobody ends. It says what there is.
func TestLeaves(t *testing.T) {
	if os.Getenv(leavesEnv) == "" {
		return // TestNothingIsLeft runs it
	}
	dir := LabDir(t)
	id := fmt.Sprintf("%05x", os.Getpid()&0xfffff)
	if err := os.Mkdir(filepath.Join(dir, id), 0o700); err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("antrail-reaptest-%d-", os.Getpid())
	program, err := os.MkdirTemp("", "antrail-test-")
	if err := errors.Join(err, Namespaces(prefix), Directory(program)); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("left %s\nleft %s\n", filepath.Dir(dir), program)
	runtime.LockOSThread()
	for _, name := range []string{"antrail-" + id + "-node-a", prefix + "1", prefix + "2"} {
		if _, err := netns.NewNamed(name); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("left /run/netns/%s\nleft /proc/%d/exe\n", name, c.Process.Pid)
	}
	fmt.Println("all")
	select {}
}

// TestNothingIsLeft interrupts such a test, kills it, or lets it reach its deadline.
func TestNothingIsLeft(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for name, end := range map[string]func(*exec.Cmd) error{
		"interrupted": func(c *exec.Cmd) error { return unix.Kill(-c.Process.Pid, unix.SIGINT) },
		"killed":      func(c *exec.Cmd) error { return c.Process.Kill() },
		"deadline":    func(*exec.Cmd) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.Command(os.Args[0], "-test.run=^TestLeaves$", "-test.timeout=2s")
			c.Env = append(os.Environ(), leavesEnv+"=1")
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for s := bufio.NewScanner(out); s.Scan() && s.Text() != "all"; {
				if path, ok := strings.CutPrefix(s.Text(), "left "); ok {
					left = append(left, path)
				}
			}
			if len(left) != 8 {
				t.Fatalf("there is only %q", left)
			}
			if err := end(c); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err == nil {
				t.Error("the test passed")
			}
			for _, path := range left {
				wantGone(t, path)
			}
		})
	}
}

// wantGone waits until a file is not there. A process that has ended has no exe,
// although its parent may not have looked yet.
func wantGone(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(path)
		if os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is left: %v", path, err)
		}
	}
}
