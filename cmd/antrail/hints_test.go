//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
)

// TestRootHint: a permission error gets a hint about root, if the user is not root.
func TestRootHint(t *testing.T) {
	var b bytes.Buffer
	tellError(&b, fmt.Errorf("mkdir /run/antrail: %w", fs.ErrPermission))
	if told := strings.Contains(b.String(), "This is not root"); told != (os.Geteuid() != 0) {
		t.Errorf("user %d is told %q", os.Geteuid(), b.String())
	}
}

// TestLessonsDirHint: if the lessons' directory cannot be written, the hint says how to choose
// one, and does not mention root.
func TestLessonsDirHint(t *testing.T) {
	sealed := t.TempDir()
	if err := os.Chmod(sealed, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ dir, want string }{
		{filepath.Join(sealed, "lessons"), "permission denied"},
		{"/dev/null", "not a directory"},
	} {
		c := exec.Command("/proc/self/exe", "learn", "1", "--dir", s.dir)
		c.Env = append(os.Environ(), asBinary+"=1")
		if os.Geteuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := c.CombinedOutput()
		text := string(out)
		if err == nil || !strings.Contains(text, "antrail: the lesson's files cannot be read or written: ") || !strings.Contains(text, s.want) ||
			!strings.Contains(text, "\nName a writable directory") || strings.Contains(text, "root") {
			t.Errorf("%s: %v\n%s", s.dir, err, text)
		}
	}
}

// TestInterrupted: after Ctrl-C the error says "interrupted".
func TestInterrupted(t *testing.T) {
	var b bytes.Buffer
	tellError(&b, fmt.Errorf("before the kill: %w", context.Canceled))
	if want := "antrail: before the kill: interrupted\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestRunningHint: if an agent runs already, the hint says how to replace it.
func TestRunningHint(t *testing.T) {
	var b bytes.Buffer
	tellError(&b, after(t.Context(), fmt.Errorf("%w already", agent.ErrRunning), false))
	if want := "antrail: an agent is running already\n--take-over replaces it"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("%q", b.String())
	}
}

// TestEndedHint: if the agent has ended, the hint names its log, if that is beside the socket.
func TestEndedHint(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name+".sock")})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	log := filepath.Join(dir, "a.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "has ended: its log says why (" + log + ").\n", "b": "has ended: its log says why.\n"} {
		var b bytes.Buffer
		if code := run([]string{"drops", "--socket", filepath.Join(dir, name+".sock")}, &b, &b); code != exitFailed || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%s: exit code %d\n%s", name, code, &b)
		}
	}
}

// TestOtherLabs: a lab that is not the only one says how to name it.
func TestOtherLabs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ANTRAIL_LAB_DIR", dir)
	l := &lab.Lab{State: lab.State{ID: "0000b"}}
	for _, s := range []struct{ id, want string }{{"0000b", ""}, {"0000a", "There are 2 labs now: commands for this one need --lab 0000b"}} {
		if err := os.Mkdir(filepath.Join(dir, s.id), 0o700); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := noteOthers(&b, l); err != nil || !strings.Contains(b.String(), s.want) || s.want == "" && b.Len() > 0 {
			t.Errorf("%v: %q, want %q", err, b.String(), s.want)
		}
	}
}

// TestHasNode: the error about a misspelled Node lists the Nodes, and no pods.
func TestHasNode(t *testing.T) {
	l := &lab.Lab{State: lab.State{ID: "0000b"}, Topology: lab.Topology{Nodes: []lab.Node{{Name: "node-a", Pods: []lab.Pod{{Name: "client-a"}}}, {Name: "node-b"}}}}
	if err := hasNode(l, "node-b"); err != nil {
		t.Error(err)
	}
	const want = `lab 0000b has no Node "nodea" (did you mean node-a?); there are node-a, node-b`
	if err := hasNode(l, "nodea"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestWhyIsShort: the answer comes first and alone, the walk when it is asked for.
func TestWhyIsShort(t *testing.T) {
	args := []string{"why", "default/client-a", "default/db-a:3306", "--manifests", "examples/web-app"}
	var short, long bytes.Buffer
	if code := run(args, &short, &short); code != exitFailed || strings.Count(short.String(), "\n") > 6 || strings.Contains(short.String(), "├─") {
		t.Errorf("code %d:\n%s", code, &short)
	}
	if run(append(args, "-v"), &long, &long); !strings.HasPrefix(long.String(), short.String()+"\n") || !strings.Contains(long.String(), "├─") {
		t.Errorf("with -v:\n%s", &long)
	}
}
