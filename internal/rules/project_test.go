package rules

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// projectPages are the pages that say how to work on the project.
var projectPages = []string{"CONTRIBUTING.md", "SECURITY.md", "README.md"}

var (
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	fileName    = regexp.MustCompile(`^((\.ci|[A-Za-z0-9_-]+)(/[A-Za-z0-9_.-]+)+/?|[A-Z][A-Za-z0-9-]*\.md|go\.mod)$`)
	makeTarget  = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
)

// TestNamedFilesExist: each file and directory that a page of the project names is there,
// and each target of make. A name in backticks is a file if it has a slash and no point
// before it, or is that of a page or go.mod.
func TestNamedFilesExist(t *testing.T) {
	root := top(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range projectPages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, m := range inBackticks.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if !fileName.MatchString(name) || strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "dist/") {
				continue // not a file, or one that a build writes
			}
			named++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names `%s`, which is not there", page, name)
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
				t.Errorf("%s says make %s; the Makefile has no such target", page, m[1])
			}
		}
		if page == "CONTRIBUTING.md" && named < 20 {
			t.Errorf("%s names only %d files", page, named)
		}
	}
}

// TestKernelProgramsHaveOurLicence: what the programs tell the kernel is the licence of
// the repository, so none may call a function that is for GPL programs.
func TestKernelProgramsHaveOurLicence(t *testing.T) {
	var seen []string
	for _, f := range read(t, true) {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, ok := kv.Key.(*ast.Ident)
			if !ok || key.Name != "License" {
				return true
			}
			seen = append(seen, f.dir)
			if v, ok := kv.Value.(*ast.BasicLit); !ok || v.Value != `"Apache-2.0"` {
				t.Errorf("%s has an eBPF program with another licence than Apache-2.0, which is that of LICENSE", f.path)
			}
			return true
		})
	}
	if len(seen) < 5 {
		t.Errorf("only %d programs were found: %q", len(seen), seen)
	}
}

// checkLeavesOut matches the lines of hack/check that list the packages it leaves out.
var checkLeavesOut = regexp.MustCompile(`(?m)^rooted="(?:\$rooted )?([^"]+)"$`)

// TestCheckLeavesOutPackages: each package that hack/check leaves out exists and has tests.
// A package that moved would otherwise be tested as an ordinary user, and nobody would
// notice.
func TestCheckLeavesOutPackages(t *testing.T) {
	root := top(t)
	text, err := os.ReadFile(filepath.Join(root, "hack", "check"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range checkLeavesOut.FindAllSubmatch(text, -1) {
		names = append(names, strings.Fields(string(m[1]))...)
	}
	if len(names) < 15 {
		t.Errorf(`hack/check leaves out only %d packages: %q; the test reads lines rooted="…"`, len(names), names)
	}
	for _, name := range names {
		tests, err := filepath.Glob(filepath.Join(root, name, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) == 0 {
			t.Errorf("hack/check leaves out %s, which has no tests: correct the name, or remove it from rooted", name)
		}
	}
}
