package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one module that a program links, or Go's standard library.
type module struct {
	path, version string
	root          string              // its directory
	packages      map[string]struct{} // directories of its packages that are linked
}

// linked lists the modules of the programs on Linux, for all architectures, in the order of their
// paths. Go's standard library is the first, as "Go".
func linked(programs, architectures []string) ([]*module, error) {
	all := map[string]*module{}
	const format = `{{if .Standard}}Go		{{.Root}}	{{.Dir}}{{else}}{{with .Module}}{{if not .Main}}{{.Path}}	{{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}{{end}}`
	for _, arch := range architectures {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-pgo=off", "-f", format}, programs...)...)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return nil, goError(complaint.String())
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 4 {
				continue
			}
			m := all[f[0]]
			if m == nil {
				m = &module{path: f[0], version: f[1], root: f[2], packages: map[string]struct{}{}}
				all[f[0]] = m
			}
			m.packages[f[3]] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *module) int { return strings.Compare(a.path, b.path) }), nil
}

// fetching is the text of Go's error when it cannot fetch a module.
var fetching = regexp.MustCompile(`module lookup disabled|dial tcp|no such host|connection refused|timeout|Client\.Timeout`)

// goError is an error of `go list`: errUnreachable if a module is missing.
func goError(said string) error {
	said = strings.TrimSpace(said)
	if fetching.MatchString(said) {
		return fmt.Errorf("%w: %s", errUnreachable, strings.SplitN(said, "\n", 2)[0])
	}
	return fmt.Errorf("go list: %s", said)
}

// legal matches the name of a licence file, or of a notice that goes with one.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice)([-.].*)?$`)

// notLinked are licence files beside a linked package, of parts of it that are not linked.
var notLinked = map[string]string{
	"Go/src/crypto/internal/boring/LICENSE": "BoringSSL's object file, which only GOEXPERIMENT=boringcrypto links",
}

// files are the licence and notice files of a module. They lie at its root, and beside and above
// its linked packages, for code that was taken from elsewhere.
func (m *module) files() ([]string, error) {
	dirs := map[string]bool{m.root: true}
	for dir := range m.packages {
		for ; strings.HasPrefix(dir, m.root) && !dirs[dir]; dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	var found []string
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if notLinked[m.path+strings.TrimPrefix(dir, m.root)+"/"+e.Name()] != "" {
				continue
			}
			if e.Type().IsRegular() && legal.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
