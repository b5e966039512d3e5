package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReplace: the socket has its mode, only its name is left in the directory, and it replaces
// the socket of an ended process.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	for _, mode := range []os.FileMode{0o600, 0o750} {
		ln, err := Replace(path, mode)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("mode %v, want %v, %v", st.Mode(), mode, err)
		}
		if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		wantAnswers(t, path, true)
		ln.Close()
		wantAnswers(t, path, false)
	}
}

func wantAnswers(t *testing.T, path string, want bool) {
	t.Helper()
	if got, err := Answers(path); got != want || err != nil {
		t.Errorf("%s answers: %v, %v, want %v", path, got, err, want)
	}
}

// TestTooLong: the kernel's own error for a path that is too long is "invalid argument".
func TestTooLong(t *testing.T) {
	base, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	fits := base + "/"
	fits += strings.Repeat("s", longest-len(fmt.Sprintf("%s.%d", fits, os.Getpid())))
	if ln, err := Replace(fits, 0o600); err != nil {
		t.Error(err)
	} else {
		ln.Close()
	}
	if _, err := Replace(fits+"s", 0o600); err == nil || !strings.Contains(err.Error(), "1 bytes too long") {
		t.Errorf("a long path: %v", err)
	}
}

// TestFullQueue: a process with a full queue of connections has not ended.
func TestFullQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	to := &syscall.SockaddrUnix{Name: path}
	fd := stream(t)
	if err := errors.Join(syscall.Bind(fd, to), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for syscall.Connect(stream(t), to) == nil {
	}
	wantAnswers(t, path, true)
}

// stream is a unix socket that does not wait.
func stream(t *testing.T) int {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	return fd
}

// TestNotFree: a file that is not a socket, and a socket of another type, are errors.
func TestNotFree(t *testing.T) {
	dir := t.TempDir()
	file, datagrams := filepath.Join(dir, "file"), filepath.Join(dir, "datagrams")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagrams, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range []string{file, datagrams} {
		if answers, err := Answers(path); answers || err == nil {
			t.Errorf("%s answers: %v, %v, want an error", path, answers, err)
		}
	}
	wantAnswers(t, filepath.Join(dir, "missing"), false)
}
