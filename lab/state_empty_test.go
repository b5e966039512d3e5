package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRemoveEmpty: the last lab removes the directories. Directories with other files stay.
func TestRemoveEmpty(t *testing.T) {
	run := filepath.Join(t.TempDir(), "antrail")
	labs := filepath.Join(run, "lab")
	other := filepath.Join(labs, "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	removeEmpty(labs)
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another lab's state: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	removeEmpty(labs)
	if _, err := os.Stat(run); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", run, err)
	}
}
