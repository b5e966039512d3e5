//go:build linux && (amd64 || arm64)

// Package confinetest runs tests of a package in a confined process (internal/confine). The test
// binary starts itself again, with descriptors from the test.
package confinetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/confine"
	"github.com/antrail/antrail/internal/nstest"
)

// user is the user of confined processes: nobody on Debian.
const user = 65534

var inside bool

// Main is the body of the package's TestMain.
func Main(m *testing.M) {
	c, err := confine.Enter()
	if err == nil && c != nil && len(c.Missing) > 0 {
		err = fmt.Errorf("missing: %q", c.Missing)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	inside = c != nil
	os.Exit(m.Run())
}

// Inside reports whether this is the confined process. In it, a test does its confined part and
// returns.
func Inside() bool { return inside }

// A Process is a confined process.
type Process struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	test string
}

// Start runs a test in a confined process, in a network namespace. Its descriptors are
// copies of fds, from 3 on.
func Start(t *testing.T, n *nstest.Namespace, test string, fds []int) *Process {
	t.Helper()
	state, err := os.MkdirTemp("", "antrail-confined-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	if err := os.Chown(state, user, user); err != nil {
		t.Fatal(err)
	}
	o := confine.Options{State: state, UID: user, GID: user}
	p := &Process{test: test}
	if p.cmd, err = confine.Command(o, "/proc/self/exe", "-test.v", "-test.timeout=2m", "-test.run=^"+test+"$"); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	for _, fd := range fds {
		path := fmt.Sprintf("descriptor %d", fd)
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, os.NewFile(uintptr(fd), path))
	}
	n.Do(t, func() { err = p.cmd.Start() })
	for _, f := range p.cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		if p.cmd.ProcessState == nil { // Wait was not called
			p.cmd.Wait()
			if t.Failed() {
				t.Logf("confined: %s", &p.out)
			}
		}
	})
	return p
}

// Wait fails the test unless the confined one has passed.
func (p *Process) Wait(t *testing.T) {
	t.Helper()
	err := p.cmd.Wait()
	if err != nil || !strings.Contains(p.out.String(), "--- PASS: "+p.test+" ") {
		t.Fatalf("confined: %v\n%s", err, &p.out)
	}
	t.Logf("%s", &p.out)
}

// Kill ends the confined one by SIGKILL, unless it has failed before.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.cmd.Process.Kill()
	p.cmd.Wait() // the error is the signal
	if strings.Contains(p.out.String(), "--- FAIL") {
		t.Fatalf("confined: %s", &p.out)
	}
}
