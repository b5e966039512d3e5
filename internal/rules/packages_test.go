package rules

import (
	"cmp"
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/packages.md")

const packagesPage = "docs/packages.md"

const packagesHead = `# Packages

Every package of the repository, what it holds, and which of ours it imports, from the code.
` + "`go doc`" + ` on a package says what each of its files is for.
` + "`internal/rules`" + ` says which imports are allowed, and why. [How a packet goes through antrail](architecture.md) is the way through them.

` + "`dataplane`" + ` knows no table, mark or zone by name: the pipeline is data. The body of a goroutine has a name that begins with ` + "`run`" + `.
A test keeps this page; ` + "`go test ./internal/rules -run TestPackagesPage -update`" + ` writes it.

| package | what it is or does | imports, of ours |
|---|---|---|
`

// TestPackagesPage compares the page with the packages that there are.
func TestPackagesPage(t *testing.T) {
	imports, about := map[string][]string{}, map[string]string{}
	for _, f := range read(t, false) {
		if hidden(f.dir) {
			continue
		}
		imports[f.dir] = append(imports[f.dir], ours(f)...)
		about[f.dir] = cmp.Or(about[f.dir], synopsis(t, f))
	}
	var rows []string
	for dir, all := range imports {
		slices.Sort(all)
		list := "nothing"
		if all = slices.Compact(all); len(all) > 0 {
			list = "`" + strings.Join(all, "`, `") + "`"
		}
		if about[dir] == "" {
			t.Errorf("%s has no package comment: say in one sentence what it holds", dir)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", dir, strings.ReplaceAll(about[dir], "|", `\|`), list))
	}
	slices.Sort(rows)
	want, page := packagesHead+strings.Join(rows, ""), filepath.Join(top(t), packagesPage)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("%s is not the list of packages (%v); write it with -update", packagesPage, err)
	}
}

// hidden reports whether the page leaves a package out: the examples, the tools, and the
// helpers of tests.
func hidden(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return first == "hack" || first == "examples" || strings.HasSuffix(dir, "test") || dir == "internal/rules"
}

// ours returns the packages of this repository that a file imports, but for internal ones.
func ours(f *file) (all []string) {
	for _, i := range f.imports {
		if dir, ok := strings.CutPrefix(i, module); ok && !strings.HasPrefix(dir, "internal/") {
			all = append(all, dir)
		}
	}
	return all
}

// synopsis returns the first sentence of a file's package comment without "Package X".
func synopsis(t *testing.T, f *file) string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	text := (&doc.Package{}).Synopsis(tree.Doc.Text())
	for _, word := range []string{"Package ", "Command "} {
		if rest, ok := strings.CutPrefix(text, word); ok {
			_, text, _ = strings.Cut(rest, " ")
		}
	}
	return strings.TrimSuffix(text, ":")
}
