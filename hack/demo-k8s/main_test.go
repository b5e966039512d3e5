package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNobodyElses: what another could have written is not gone by.
func TestNobodyElses(t *testing.T) {
	none, own, open := filepath.Join(t.TempDir(), "none"), t.TempDir(), t.TempDir()
	link, file := filepath.Join(own, "link"), filepath.Join(own, "file")
	for _, err := range []error{os.Chmod(own, 0o700), os.Chmod(open, 0o777), os.Symlink(own, link), os.WriteFile(file, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, good := range map[string]bool{none: true, own: true, open: false, link: false, file: false} {
		if err := nobodyElses(dir); (err == nil) != good {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
