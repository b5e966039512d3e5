// Package filetree gathers files of this machine into a tree, by their future paths, and writes
// it as an archive. The archive is a layer of a container image, or the first root of a kernel
// that boots.
package filetree

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is files by their paths, without the first slash.
type Tree map[string]Entry

// Entry is a file, or a symbolic link.
type Entry struct {
	Content    []byte
	Executable bool
	Link       string // where a link leads; "" for a file
}

// libraryDirs are where Debian has shared libraries; the loader looks there too.
var libraryDirs = []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// Put adds an entry. Two different entries at one path are an error.
func (t Tree) Put(at string, e Entry) error {
	at = strings.TrimPrefix(path.Clean(at), "/")
	if was, ok := t[at]; ok && (!bytes.Equal(was.Content, e.Content) || was.Link != e.Link) {
		return fmt.Errorf("/%s is given twice", at)
	}
	t[at] = e
	return nil
}

// Add adds FILE:PATH.
func (t Tree) Add(spec string) error {
	file, at, ok := strings.Cut(spec, ":")
	if !ok || !path.IsAbs(at) {
		return fmt.Errorf("%q is not FILE:PATH with the whole path", spec)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	return t.Put(at, Entry{Content: content, Executable: st.Mode()&0o111 != 0})
}

// AddProgram adds FILE:PATH, the program's loader and its libraries, at their paths below root.
// root is "/" for this machine, or a directory with the files of another.
func (t Tree) AddProgram(spec, root string) error {
	if err := t.Add(spec); err != nil {
		return err
	}
	file, _, _ := strings.Cut(spec, ":")
	needed, err := libraries(root, file, map[string]bool{})
	if err != nil {
		return err
	}
	for _, at := range needed {
		f, err := follow(root, at)
		if err != nil {
			return err
		}
		if err := t.Add(f + ":" + at); err != nil {
			return err
		}
	}
	return nil
}

// follow resolves a path below root to a file. A symbolic link to an absolute path stays below
// root.
func follow(root, at string) (string, error) {
	const most = 10
	for range most {
		file := filepath.Join(root, at)
		to, err := os.Readlink(file)
		if err != nil {
			return file, nil // not a link, or not there: reading it says so
		}
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(at), to)
		}
		at = to
	}
	return "", fmt.Errorf("%s: more than %d symbolic links", filepath.Join(root, at), most)
}

// libraries are the paths below root of the files that an ELF program needs, directly or
// indirectly: its interpreter and the shared libraries. Each is listed once.
func libraries(root, file string, seen map[string]bool) (all []string, err error) {
	names, err := imported(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range names {
		at, err := library(root, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		lib, err := follow(root, at)
		if err != nil {
			return nil, err
		}
		more, err := libraries(root, lib, seen)
		if err != nil {
			return nil, err
		}
		all = append(append(all, at), more...)
	}
	return all, nil
}

// imported returns the names of the shared libraries that an ELF file needs, and the path of its
// interpreter.
func imported(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if i := f.Section(".interp"); i != nil {
		name, err := i.Data()
		if err != nil {
			return nil, err
		}
		names = append(names, strings.TrimRight(string(name), "\x00"))
	}
	return names, nil
}

// library finds a shared library by its name, and returns its path below root.
func library(root, name string) (string, error) {
	if path.IsAbs(name) {
		return name, nil
	}
	for _, dir := range libraryDirs {
		if found, _ := filepath.Glob(filepath.Join(root, dir, name)); len(found) > 0 {
			return "/" + strings.TrimLeft(strings.TrimPrefix(found[0], root), "/"), nil
		}
	}
	return "", fmt.Errorf("the library %s is in none of %s", name, strings.Join(libraryDirs, ", "))
}

// names returns the paths of the entries and of the directories above them, in order.
func (t Tree) names() []string {
	all := map[string]bool{}
	for name := range t {
		for ; name != "."; name = path.Dir(name) {
			all[name] = true
		}
	}
	var sorted []string
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}
