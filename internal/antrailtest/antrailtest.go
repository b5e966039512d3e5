// Package antrailtest builds the program for tests that run it as a process.
package antrailtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/internal/reaptest"
)

// programEnv names a program that was built before, where tests run without Go.
const programEnv = "ANTRAIL_TEST_PROGRAM"

// Build builds antrail into a directory and returns its path.
func Build(dir string) (path string, err error) {
	if path = os.Getenv(programEnv); path != "" {
		return path, nil
	}
	path = filepath.Join(dir, "antrail")
	out, err := exec.Command("go", "build", "-o", path, "github.com/antrail/antrail/cmd/antrail").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Main runs a package's tests with antrail built, whose path it puts into binary, and
// returns the exit code of the process. The program goes when they have ended.
func Main(m *testing.M, binary *string) (code int) {
	dir, err := os.MkdirTemp("", "antrail-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = reaptest.Directory(dir)
	}
	if err == nil {
		*binary, err = Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
