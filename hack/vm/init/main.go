// Init is the first process of a virtual machine that hack/vm boots. It loads the modules of the
// kernel, runs the commands, and ends the machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	failed := 0
	err := prepareMachine()
	if err == nil {
		failed, err = runAll()
	}
	switch {
	case err != nil:
		fmt.Println("vm:", err)
	case failed > 0:
		fmt.Printf("vm: failed: %d commands\n", failed)
	default:
		fmt.Println("vm: all is well")
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("vm: power off:", err)
	}
}

// mounts are the file systems that programs expect.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"}, {"bpf", "/sys/fs/bpf"}, {"cgroup2", "/sys/fs/cgroup"},
}

// prepareMachine mounts the file systems and loads the modules.
func prepareMachine() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	files, err := filepath.Glob("/modules/*")
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := load(f); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", f, err)
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	fmt.Printf("vm: Linux %s, %d modules loaded\n", unix.ByteSliceToString(u.Release[:]), len(files))
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// runAll runs the commands and counts those that fail.
func runAll() (failed int, err error) {
	text, err := os.ReadFile("/commands")
	if err != nil {
		return 0, err
	}
	var words []string
	for _, word := range append(strings.Split(string(text), "\x00"), "--") {
		if word != "--" {
			words = append(words, word)
			continue
		}
		if len(words) > 0 && !run(words) {
			failed++
		}
		words = nil
	}
	return failed, nil
}

// run runs a command, prints how long it took, and says whether it succeeded.
func run(words []string) bool {
	fmt.Println("vm: #", strings.Join(words, " "))
	env, dir := append(os.Environ(), "PATH=/bin", "HOME=/tmp"), "/"
	for len(words) > 1 {
		name, value, is := strings.Cut(words[0], "=")
		if !is {
			break
		}
		if name == "cd" {
			dir = value
		} else {
			env = append(env, words[0])
		}
		words = words[1:]
	}
	c := exec.Command(filepath.Join("/bin", words[0]), words[1:]...)
	c.Env, c.Dir, c.Stdout, c.Stderr = env, dir, os.Stdout, os.Stdout
	began := time.Now()
	err := c.Run()
	fmt.Printf("vm: %.1f s, %v\n", time.Since(began).Seconds(), verdict(err))
	return err == nil
}

func verdict(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}
