// Command book writes docs/pipeline: a page for each table of the pipeline, and
// a page for each of some packets' walks. Nothing there is written by hand; it
// is made from
//
//   - the head of each table's file in tables/, which is its author's text;
//   - the flow entries that the objects of examples/web-app become on node-a,
//     with the object behind each;
//   - real packets, which walk the switches of both Nodes on ports in memory.
//
// So it is true as long as it is fresh, and the test beside it fails when it is
// not. To write it anew, from the top of the repository:
//
//	go run ./docs/book
//
// The files, in the order in which a page comes about: cluster.go asks the
// switches, variants.go makes entries of features that the sample has not, source.go
// reads tables/, marks.go gives bits their names and known.go numbers, usage.go tells
// who sets what others read, entries.go explains entries, tablepage.go, walks.go and
// walkpage.go write pages, programs.go those of other programs, index.go the first one, wrap.go
// breaks long lines.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrail/antrail/tables"
)

// pages is where the book lies, from the top of the repository.
const pages = "docs/pipeline"

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "book:", err)
		os.Exit(1)
	}
}

// write makes the book of the repository at a directory, and deletes what is no
// page of it any more.
func write(top string) error {
	files, err := generate(top)
	if err != nil {
		return err
	}
	dir := filepath.Join(top, pages)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate makes all pages, by their path within the book.
func generate(top string) (map[string][]byte, error) {
	sources, err := readSources(top, "tables", tables.TableNames())
	if err != nil {
		return nil, err
	}
	c, err := newCluster(top, sources)
	if err != nil {
		return nil, err
	}
	defer c.close()
	b := &book{cluster: c, files: map[string][]byte{}, passed: map[string][]string{}}
	for i := range walks {
		if err := b.walkPage(i); err != nil {
			return nil, fmt.Errorf("%s: %w", walks[i].file, err)
		}
	}
	for _, t := range b.tables {
		if err := b.tablePage(t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err = b.programPages(top); err != nil {
		return nil, err
	}
	err = b.indexPage()
	for name, text := range b.files {
		if strings.HasSuffix(name, ".md") {
			b.files[name] = wrapped(text)
		}
	}
	return b.files, err
}

// book is the pages that are being written.
type book struct {
	*cluster
	files  map[string][]byte
	passed map[string][]string // links to the walks that pass a table, by its name
}
