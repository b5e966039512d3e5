// Package antrailtest builds the program for tests that run it as a process, and reads and
// edits files for tests.
package antrailtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// Without a profile, symbols and debug information. So the compiled packages of the tests can
	// be used again, and the linker has half the work.
	out, err := exec.Command("go", "build", "-pgo=off", "-ldflags=-s -w", "-o", path, "github.com/antrail/antrail/cmd/antrail").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Main builds antrail, puts its path into binary, and runs a package's tests. It returns the exit
// code of the process. The program is removed after the tests.
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

// ReplaceIn replaces the first occurrence of a text in a file. The test fails if there is
// none.
func ReplaceIn(t testing.TB, file, old, new string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), old, new, 1)
	if text == string(b) {
		t.Fatalf("%s: no %q", file, old)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files reads the files that match a pattern, at least one. It returns their texts by name.
func Files(t testing.TB, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s names %d files, error %v", pattern, len(names), err)
	}
	files := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

// Write replaces a file in one step, as an editor does. A watcher sees the old text or the whole
// new one. path is joined.
func Write(t testing.TB, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	tmp := filepath.Join(filepath.Dir(name), ".new")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, name); err != nil {
		t.Fatal(err)
	}
}
