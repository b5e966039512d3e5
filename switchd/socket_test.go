package switchd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "agent.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestListenSaysTooLong: the kernel's own error for a path that is too long is "invalid
// argument".
func TestListenSaysTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", longestSocket))
	if _, err := Listen(filepath.Join(dir, "agent.sock")); err == nil || !strings.Contains(err.Error(), "bytes too long") {
		t.Errorf("a long path: %v", err)
	}
	// A path that just fits.
	base, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	fits := base + "/"
	fits += strings.Repeat("s", longestSocket-len(fmt.Sprintf("%s.%d", fits, os.Getpid())))
	ln, err := Listen(fits)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestListenRefusesLiveSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("second agent: %v", err)
	}
}

func TestListenReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	dead, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	dead.Close() // the file stays, as after a kill
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestListenKeepsOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil {
		t.Error("a file that is no socket was replaced")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}
