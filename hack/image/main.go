// Image writes a container image from files of this machine, without a container
// engine and without a base image:
//
//	go run ./hack/image -o F.tar -name REPOSITORY:TAG [-entrypoint P,...] [-env K=V]
//	    [-root DIR] [-add FILE:PATH] [-program FILE:PATH] [-link TARGET:PATH] ...
//
// -add adds a file as it is, -program also the shared libraries that it needs, -link adds a
// symbolic link. The archive is an OCI image layout (image-spec, image-layout.md) with one layer.
// It also has the manifest.json of `docker save`, so ctr, docker, podman and skopeo read it. The
// same files make the same bytes: entries are sorted, owned by root, and have no times.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/antrail/antrail/hack/filetree"
)

// list is a flag that is given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// order is what the command line asks for.
type order struct {
	out, entrypoint, arch string
	root                  string // where the libraries of programs are
	names, env            list
	adds, programs, links list
}

func main() {
	var o order
	flag.StringVar(&o.out, "o", "", "the archive to write")
	flag.StringVar(&o.entrypoint, "entrypoint", "", "the program and its first arguments, between commas")
	flag.StringVar(&o.arch, "arch", runtime.GOARCH, "architecture of the files, as Go calls it")
	flag.Var(&o.names, "name", "repository:tag; several give several names")
	flag.Var(&o.env, "env", "NAME=VALUE")
	flag.Var(&o.adds, "add", "FILE:PATH")
	flag.Var(&o.programs, "program", "FILE:PATH, with its shared libraries")
	flag.StringVar(&o.root, "root", "/", "directory that has the libraries of -program: another architecture's, unpacked")
	flag.Var(&o.links, "link", "TARGET:PATH")
	flag.Parse()
	if err := o.write(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write makes the archive, whole or not at all.
func (o *order) write() error {
	if o.out == "" || len(o.names) == 0 || flag.NArg() > 0 {
		return errors.New("want -o and -name, and only flags")
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	archive, err := o.archive(files)
	if err != nil {
		return err
	}
	fresh := o.out + ".new"
	if err := os.WriteFile(fresh, archive, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, o.out)
}

// files are those of the layer.
func (o *order) files() (filetree.Tree, error) {
	all := filetree.Tree{}
	for _, a := range o.adds {
		if err := all.Add(a); err != nil {
			return nil, err
		}
	}
	for _, p := range o.programs {
		if err := all.AddProgram(p, o.root); err != nil {
			return nil, err
		}
	}
	for _, l := range o.links {
		target, path, ok := strings.Cut(l, ":")
		if !ok {
			return nil, fmt.Errorf("-link %q is not TARGET:PATH", l)
		}
		if err := all.Put(path, filetree.Entry{Link: target}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
