// Package hack holds the scripts that build, test and release; these tests run those
// that must say something when a machine lacks what they need.
package hack

import (
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binWith makes a directory of programs: links to those of the machine that are named,
// and shell scripts by name.
func binWith(t *testing.T, programs []string, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		at, err := exec.LookPath(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script runs a script of this directory with one directory as PATH, and returns what
// it printed and its exit code.
func script(t *testing.T, path, name string, args ...string) (printed string, code int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{name}, args...)...)
	cmd.Env = []string{"PATH=" + path, "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestGoIsMissingOrOld: need-packages says so in one line before it looks for packages,
// and says nothing about a Go that is new enough.
func TestGoIsMissingOrOld(t *testing.T) {
	tools := []string{"sh", "sed", "sort", "head", "dirname"}
	for _, c := range []struct {
		name, goScript, want string
		code                 int
	}{
		{"missing", "", "there is no go in PATH", 1},
		{"Debian 12", "echo go1.19.8", "is go1.19.8: see \"Go\" in README.md", 1},
		{"one patch too old", "echo go1.25.9", "is go1.25.9", 1},
		// In the module such a Go fails; outside of it, it says its version.
		{"cannot fetch a newer one", `[ "$PWD" = / ] && echo go1.23.5`, "is go1.23.5", 1},
		{"broken", "exit 1", "does not say its version", 1},
		{"as go.mod says", "echo go1.26.0", "", 0},
		{"newer", "echo go1.30", "", 0},
		{"from source", "echo 'devel go1.31-abcdef'", "", 0},
	} {
		scripts := map[string]string{}
		if c.goScript != "" {
			scripts["go"] = c.goScript + "\n"
		}
		out, code := script(t, binWith(t, tools, scripts), "need-packages", "build")
		lines := strings.Count(out, "\n")
		if code != c.code || !strings.Contains(out, c.want) || lines > 1 || (c.want == "") != (out == "") {
			t.Errorf("%s: exit code %d, printed %q; want %d, %q", c.name, code, out, c.code, c.want)
		}
	}
}

// TestVulncheckSaysWhy: each end of govulncheck has its exit code, and a database that
// cannot be reached is not a clean result.
func TestVulncheckSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name, goScript, want string
		code                 int
	}{
		{"clean", "echo 'No vulnerabilities found.'", "No vulnerabilities found.", 0},
		{"found", "echo 'Vulnerability #1: GO-2026-0001'; echo 'exit status 3' >&2; exit 1", "GO-2026-0001", 3}, // as `go run` does
		{"no database", "echo 'govulncheck: fetching vulnerabilities: Get \"https://db/index\": dial tcp: no such host' >&2; exit 1",
			"vulncheck: the database of vulnerabilities cannot be reached, so nothing was checked", 4},
		{"no tool", "echo 'go: golang.org/x/vuln@v1: module lookup disabled by GOPROXY=off' >&2; exit 1",
			"vulncheck: govulncheck cannot be fetched from the Go module proxy, so nothing was checked", 5},
		{"another error", "echo 'govulncheck: loading packages: syntax error' >&2; exit 1", "loading packages", 1},
	} {
		path := binWith(t, []string{"sh", "mktemp", "rm", "cat", "grep", "dirname"}, map[string]string{"go": c.goScript + "\n"})
		out, code := script(t, path, "vulncheck", "golang.org/x/vuln/cmd/govulncheck@v1")
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, printed %q; want %d, %q", c.name, code, out, c.code, c.want)
		}
	}
}

// TestVersionIsGos compares hack/version with what the Go toolchain makes of the same
// checkout: without a tag, at one, after one, after one of a pre-release, with a change.
func TestVersionIsGos(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GIT_CONFIG_GLOBAL=/dev/null", "ANTRAIL_SOURCE="+dir,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a", "TZ=Asia/Tokyo")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	version, err := filepath.Abs("version")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.org/m\n\ngo 1.26.0\n")
	write("m.go", "package main\n\nfunc main() {}\n")
	write(".gitignore", "/m\n")
	run("git", "init", "-q")
	run("git", "add", ".")
	for _, step := range []struct{ tag, prefix string }{
		{"", "v0.0.0-"}, {"v0.1.0", "v0.1.0"}, {"", "v0.1.1-0."}, {"v0.2.0-rc.1", "v0.2.0-rc.1"}, {"", "v0.2.0-rc.1.0."}, {"v0.2.0", "v0.2.0"},
	} {
		run("git", "commit", "-q", "--allow-empty", "-m", "one")
		if step.tag != "" {
			run("git", "tag", step.tag)
		}
		wantGos(t, dir, run, version, step.prefix)
	}
	write("m.go", "package main\n\nfunc main() { println() }\n")
	wantGos(t, dir, run, version, "v0.2.0+dirty")
}

// wantGos builds the module and compares its build information with the script's.
func wantGos(t *testing.T, dir string, run func(string, ...string) string, version, prefix string) {
	t.Helper()
	run("go", "build", "-buildvcs=true", "-o", "m", ".")
	b, err := buildinfo.ReadFile(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	want := b.Main.Version + "\n"
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.time" {
			want += s.Value + "\n"
		}
	}
	if got := run("sh", version); got != want || !strings.HasPrefix(got, prefix) {
		t.Errorf("hack/version prints\n%sGo says\n%sand it should begin with %s", got, want, prefix)
	}
}
