// Package version says which build a program is: version, commit, date and Go.
//
// hack/version reads the first three from git, and the Makefile passes them to the linker. A
// build without them shows what the Go toolchain recorded. After `go install …@v1.2.3`, that is
// the module's version. After a plain `go build` in a checkout, it is the commit.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// These are set by the linker (-ldflags "-X …/internal/version.release=v1.2.3"), or
// empty. Nothing writes them while the program runs.
var release, commit, date string

// Build describes one build of this repository.
type Build struct {
	Version string // v1.2.3, or Go's pseudo-version of a commit without a tag
	Commit  string // the whole hash; "" if nothing recorded it
	Date    string // the commit's time in RFC 3339, UTC; "" if nothing recorded it
	Go      string // go1.26.8
}

// Of returns the build of the running program.
func Of() Build {
	b := Build{Version: release, Commit: commit, Date: date, Go: runtime.Version()}
	recorded, ok := debug.ReadBuildInfo()
	if b.Version == "" && ok {
		b.read(recorded)
	}
	return b
}

// read reads what the Go toolchain recorded.
func (b *Build) read(recorded *debug.BuildInfo) {
	b.Version = recorded.Main.Version
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
}

// Line returns one line for people and bug reports, as in
//
//	antrail v0.1.0 (commit 7f9ad1ba6e1c, 2026-11-27T11:54:23Z, go1.26.8, linux/amd64)
func (b Build) Line(program string) string {
	about := []string{}
	if b.Commit != "" {
		about = append(about, "commit "+b.Commit)
	}
	if b.Date != "" {
		about = append(about, b.Date)
	}
	about = append(about, b.Go, runtime.GOOS+"/"+runtime.GOARCH)
	known := b.Version
	if known == "" {
		known = "(unknown version)"
	}
	return fmt.Sprintf("%s %s (%s)", program, known, strings.Join(about, ", "))
}
