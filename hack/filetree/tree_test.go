package filetree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestCPIO reads an archive as Linux does: directories before what is in them, all
// padded to four bytes.
func TestCPIO(t *testing.T) {
	tree := Tree{"init": {Content: []byte("#!/bin/sh\n"), Executable: true}, "etc/odd": {Content: []byte("odd")}, "var/run": {Link: "/run"}}
	want := []string{"etc 40755 ", "etc/odd 100644 odd", "init 100755 #!/bin/sh\n", "var 40755 ", "var/run 120777 /run", "TRAILER!!! 0 "}
	if got := entriesOf(t, tree.CPIO()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// entriesOf are the entries of an archive: name, mode and content.
func entriesOf(t *testing.T, b []byte) (all []string) {
	t.Helper()
	number := func(i int) int {
		n, err := strconv.ParseUint(string(b[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	for len(b) > 0 {
		if string(b[:6]) != "070701" {
			t.Fatalf("no header: %q", b)
		}
		mode, size, name := number(1), number(6), string(b[110:110+number(11)-1])
		content := (110 + len(name) + 1 + 3) &^ 3
		all = append(all, fmt.Sprintf("%s %o %s", name, mode, b[content:content+size]))
		b = b[(content+size+3)&^3:]
	}
	return all
}

// TestFollow: a link to an absolute path stays below the root.
func TestFollow(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"lib/x", "lib64"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "lib/x/ld-2.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"lib64/ld.so": "/lib/x/ld.so", "lib/x/ld.so": "ld-2.so", "lib64/loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := follow(root, "/lib64/ld.so"); err != nil || got != filepath.Join(root, "lib/x/ld-2.so") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := follow(root, "/lib64/loop"); err == nil {
		t.Errorf("a link to itself leads to %s", got)
	}
}
