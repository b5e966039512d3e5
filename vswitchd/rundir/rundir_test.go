package rundir

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shortDir is a directory whose path fits a socket.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "rundir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestListen: a socket that a dead process left is replaced, one that answers is refused, and
// others than owner and group have no access.
func TestListen(t *testing.T) {
	path := filepath.Join(shortDir(t), "db.sock")
	dead, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Error(err)
	}
	file := filepath.Join(filepath.Dir(path), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Error(err)
	}
	if _, err := Listen(path + strings.Repeat("x", 100)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}

// lockedDir is the variable of the environment that makes TestPIDFile another process.
const lockedDir = "ANTRAIL_TEST_LOCKED_DIR"

// TestPIDFile: the file has the process' number and is locked, so another process is refused.
func TestPIDFile(t *testing.T) {
	if dir := os.Getenv(lockedDir); dir != "" {
		_, err := PIDFile(dir, "daemon")
		t.Fatal(err)
	}
	dir := shortDir(t)
	path := filepath.Join(dir, "daemon.pid")
	if err := os.WriteFile(path, []byte("12345678\n"), 0o600); err != nil { // of a dead process
		t.Fatal(err)
	}
	remove, err := PIDFile(dir, "daemon")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPIDFile$")
	cmd.Env = append(os.Environ(), lockedDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if want := fmt.Sprintf("process %d has the lock", os.Getpid()); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%s, %v", out, err)
	}
	if text, err := exec.Command("cat", path).Output(); err != nil || string(text) != fmt.Sprintf("%d\n", os.Getpid()) {
		t.Errorf("%q, %v", text, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestRemoveStale removes the sockets of dead processes only.
func TestRemoveStale(t *testing.T) {
	dir := shortDir(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, fmt.Sprintf("daemon.%d.ctl", dead.Process.Pid))
	kept := []string{ControlSocket(dir, "daemon"), filepath.Join(dir, "daemon.x.ctl"), filepath.Join(dir, "other.1.ctl")}
	for _, p := range append(kept, stale) {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveStale(dir, "daemon"); err != nil {
		t.Fatal(err)
	}
	for _, p := range kept {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("%s: %v", stale, err)
	}
}
