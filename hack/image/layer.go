package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// layer is the files of an image by their paths, without the first slash.
type layer map[string]entry

// entry is a file, or a symbolic link.
type entry struct {
	content    []byte
	executable bool
	link       string
}

// libraryDirs are where Debian has shared libraries; the loader looks there too.
var libraryDirs = []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// put adds an entry. Two at one path are an error, but for the same one twice.
func (l layer) put(at string, e entry) error {
	at = strings.TrimPrefix(path.Clean(at), "/")
	if was, ok := l[at]; ok && (!bytes.Equal(was.content, e.content) || was.link != e.link) {
		return fmt.Errorf("/%s is given twice", at)
	}
	l[at] = e
	return nil
}

// add puts FILE:PATH in.
func (l layer) add(spec string) error {
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
	return l.put(at, entry{content: content, executable: st.Mode()&0o111 != 0})
}

// addProgram puts FILE:PATH in, and what the program is loaded by and with, at the
// paths that it has here.
func (l layer) addProgram(spec string) error {
	if err := l.add(spec); err != nil {
		return err
	}
	file, _, _ := strings.Cut(spec, ":")
	needed, err := libraries(file, map[string]bool{})
	if err != nil {
		return err
	}
	for _, f := range needed {
		if err := l.add(f + ":" + f); err != nil {
			return err
		}
	}
	return nil
}

// libraries are the files that an ELF program needs, with what those need: its
// interpreter, and the shared libraries, none twice.
func libraries(file string, seen map[string]bool) (all []string, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if i := f.Section(".interp"); i != nil {
		name, err := i.Data()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		names = append(names, strings.TrimRight(string(name), "\x00"))
	}
	for _, name := range names {
		lib, err := library(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if seen[lib] {
			continue
		}
		seen[lib] = true
		more, err := libraries(lib, seen)
		if err != nil {
			return nil, err
		}
		all = append(append(all, lib), more...)
	}
	return all, nil
}

// library finds a shared library by its name.
func library(name string) (string, error) {
	if path.IsAbs(name) {
		return name, nil
	}
	for _, dir := range libraryDirs {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("the library %s is in none of %s", name, strings.Join(libraryDirs, ", "))
}

// tar writes the layer: directories before what is in them, all of root, without
// times.
func (l layer) tar() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range l.names() {
		e, ok := l[name]
		h := &tar.Header{Name: name, Format: tar.FormatPAX, Mode: 0o644}
		switch {
		case !ok:
			h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
		case e.link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.content))
			if e.executable {
				h.Mode = 0o755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// names are those of the entries and of the directories above them, in order.
func (l layer) names() []string {
	all := map[string]bool{}
	for name := range l {
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
