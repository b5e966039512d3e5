package switchd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestArenaIsOurOwnFile: anything else at its place is an error that names it,
// and stays unchanged.
func TestArenaIsOurOwnFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	link, hard, sub := filepath.Join(dir, "link"), filepath.Join(dir, "hard"), filepath.Join(dir, "sub")
	for _, err := range []error{os.Symlink(target, link), os.Link(target, hard), os.Mkdir(sub, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{link, hard, sub, "/dev/null"} {
		if _, err := openArena(path, 1<<20); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// TestBootClock (CT-44): connections end by the clock that continues over
// restarts of the agent, and not by the time of day.
func TestBootClock(t *testing.T) {
	boot := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano()
	}
	first := boot()
	clock, err := BootClock()
	if err != nil {
		t.Fatal(err)
	}
	if now := clock(); now < first || now > boot() {
		t.Errorf("%d does not lie between two readings of CLOCK_BOOTTIME, %d and %d", now, first, boot())
	}
}

func TestBootID(t *testing.T) {
	first, err := BootID()
	second, again := BootID()
	if err != nil || again != nil || first != second || first == ([16]byte{}) {
		t.Errorf("%x %v, %x %v", first, err, second, again)
	}
}

// TestOwnFiles: links and other files at its place are not followed or written.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "switch.flows")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOwnFile(path, 100); err == nil {
		t.Error("a link was followed")
	}
	if err := os.Symlink(target, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := WriteOwnFile(path, []byte("x")); err == nil {
		t.Error("a link was written to")
	}
	if _, err := ReadOwnFile(target, 3); err == nil {
		t.Error("a file that is too long was read")
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
