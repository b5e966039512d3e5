package switchd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedSeed: a file without a seed is replaced, anything but a file is
// refused.
func TestDamagedSeed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "select.seed")
	for _, text := range []string{"", "0", "0000000000000000\n", "zzzz", "-1", "12345678901234567", strings.Repeat("f", 1<<20), "\x00\x00"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		seed, err := LoadSeed(file)
		again, err2 := LoadSeed(file)
		if err != nil || err2 != nil || seed == 0 || seed != again {
			t.Errorf("%.20q: %x, then %x; %v, %v", text, seed, again, err, err2)
		}
	}
	if _, err := LoadSeed(filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a directory: %v", err)
	}
	if err := os.Symlink("/etc/hostname", file+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSeed(file + ".link"); err == nil {
		t.Error("a link is followed")
	}
}
