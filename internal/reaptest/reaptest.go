// Package reaptest cleans up after a test process that ends before its cleanups: interrupted,
// killed, or by its deadline. Agents of labs are sessions of their own, which ^C does not reach.
// A named network namespace stays until it is deleted.
//
// The reaper cleans up: this program, started again as a session of its own. The tests' process
// writes to a pipe what the reaper has to remove. No other process has that end of the pipe, so
// it closes when the tests' process ends, in whatever way.
package reaptest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// reaperEnv is set for a reaper.
const reaperEnv = "ANTRAIL_TEST_REAPER"

func init() {
	if os.Getenv(reaperEnv) != "" {
		if err := runReaper(os.Stdin); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// LabDir is a directory for the state of labs. The test's end removes both.
func LabDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := writeToReaper("labs", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// SharedLabDir is LabDir for labs of several tests. It is removed with the tests' process.
func SharedLabDir() (dir string, err error) {
	top, err := os.MkdirTemp("", "antrail-labs-")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(top, "labs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, writeToReaper("labs", dir)
}

// Namespaces has the reaper delete network namespaces, by the beginning of their names, and all
// processes in them.
func Namespaces(prefix string) error { return writeToReaper("namespaces", prefix) }

// Directory has the reaper delete a directory with everything in it.
func Directory(dir string) error { return writeToReaper("directory", dir) }

// reaper is the pipe to the reaper, opened with the first line.
var reaper struct {
	sync.Mutex
	pipe io.Writer
}

func writeToReaper(what, name string) (err error) {
	reaper.Lock()
	defer reaper.Unlock()
	if reaper.pipe == nil {
		reaper.pipe, err = start()
	}
	if err == nil {
		_, err = fmt.Fprintf(reaper.pipe, "%s %s\n", what, name)
	}
	if err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

func start() (io.Writer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(program)
	c.Dir, c.Env = "/", append(os.Environ(), reaperEnv+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	return pipe, c.Start()
}

// labID is the name of a lab's directory.
var labID = regexp.MustCompile(`^[0-9a-f]{5}$`)

// runReaper reads until the tests' process has ended, and removes what is left.
func runReaper(told io.Reader) (err error) {
	var lines []string
	for s := bufio.NewScanner(told); s.Scan(); {
		lines = append(lines, s.Text())
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		switch what, name, _ := strings.Cut(line, " "); what {
		case "namespaces":
			err = errors.Join(err, remove(name))
		case "directory":
			err = errors.Join(err, os.RemoveAll(name))
		case "labs":
			err = errors.Join(err, removeLabs(name))
		}
	}
	return err
}

// removeLabs removes the labs of a test's directory, then the directory and the one above it,
// which t.TempDir made for the same test. The namespaces of a lab are called antrail-ID-….
func removeLabs(dir string) error {
	labs, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) { // removed with its last lab
		err = nil
	}
	for _, l := range labs {
		if labID.MatchString(l.Name()) {
			err = errors.Join(err, remove("antrail-"+l.Name()+"-"))
		}
	}
	return errors.Join(err, os.RemoveAll(filepath.Dir(dir)))
}

// remove kills the processes in namespaces and deletes the namespaces' names.
func remove(prefix string) (err error) {
	files, _ := filepath.Glob("/run/netns/" + prefix + "*")
	for _, path := range files {
		for end := time.Now().Add(10 * time.Second); killInside(path) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		err = errors.Join(err, netns.DeleteNamed(filepath.Base(path)))
	}
	return err
}

// killInside kills the processes in a namespace and says whether there were any.
func killInside(path string) (any bool) {
	var in, its unix.Stat_t
	if unix.Stat(path, &in) != nil {
		return false
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, l := range links {
		if unix.Stat(l, &its) != nil || its.Dev != in.Dev || its.Ino != in.Ino {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(l, "/")[2]); err == nil && unix.Kill(pid, unix.SIGKILL) == nil {
			any = true
		}
	}
	return any
}
