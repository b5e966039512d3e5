// Command book writes docs/pipeline: a page for each table of the pipeline, and a page for each
// of some packets' walks. No page is written by hand. Its sources are
//
//   - the head of each table's file in tables/;
//   - the flow entries on node-a for the objects of examples/web-app, with the object of each;
//   - real packets, which walk the switches of both Nodes on ports in memory.
//
// The test beside it fails if the book is stale. To write the book, from the top of the
// repository:
//
//	go run ./docs/book
//
// The files, in the order in which a page is made:
//
//	cluster.go    asks the switches
//	variants.go   makes entries of features that the sample lacks
//	source.go     reads tables/
//	marks.go      names of bits
//	known.go      names of addresses and zones
//	usage.go      tables that set and read each field
//	entries.go    explains entries
//	tablepage.go  writes the page of a table
//	walks.go      the walks
//	walkpage.go   writes the page of a walk
//	programs.go   writes the pages of other programs
//	index.go      writes the first page
//	wrap.go       breaks long lines
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

// pages is the directory of the book, from the top of the repository.
const pages = "docs/pipeline"

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "book:", err)
		os.Exit(1)
	}
}

// write writes the book of the repository at a directory, and deletes files that are no longer
// pages.
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
