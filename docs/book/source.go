package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// tableSource is the head of a table's file.
type tableSource struct {
	name, file string
	text       []string    // paragraphs
	labels     [][2]string // Reads, Writes, Next, each with its text
	more       []string    // paragraphs after the labels
	functions  []function
}

// function makes entries of one kind.
type function struct{ name, text string }

// readSources reads the files of tables in a directory, in the order of their names.
func readSources(top, dir string, tables []string) ([]*tableSource, error) {
	names, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for _, path := range names {
		base := strings.TrimSuffix(filepath.Base(path), ".go")
		files[strings.ReplaceAll(base, "_", "")] = path
	}
	var all []*tableSource
	for _, table := range tables {
		path, ok := files[strings.ReplaceAll(strings.ToLower(table), "-", "")]
		if !ok {
			return nil, fmt.Errorf("%s: table %s has no file of its name", dir, table)
		}
		s, err := readSource(table, path, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// readSource reads a table's file. Its head is the comment that begins with the
// table's name.
func readSource(table, path, dir string) (*tableSource, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &tableSource{name: table, file: dir + "/" + filepath.Base(path)}
	for _, c := range tree.Comments {
		if strings.HasPrefix(c.Text(), table+" ") && s.text == nil {
			s.head(c.Text())
		}
	}
	if s.text == nil || len(s.labels) != 3 {
		return nil, errors.New(path + ": there is no head that begins with the table's name and says what it reads, writes and what is next")
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil {
			s.functions = append(s.functions, function{f.Name.Name, oneLine(f.Doc.Text())})
		}
	}
	return s, nil
}

// head splits a head: paragraphs, the labelled lines, paragraphs.
func (s *tableSource) head(text string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(paragraph, "Reads:") {
			s.label(paragraph)
			continue
		}
		to := &s.text
		if len(s.labels) > 0 {
			to = &s.more
		}
		*to = append(*to, oneLine(paragraph))
	}
}

// label reads the labelled lines. A line without a label continues the one before.
func (s *tableSource) label(paragraph string) {
	for line := range strings.Lines(paragraph) {
		word, rest, ok := strings.Cut(line, ":")
		if ok && (word == "Reads" || word == "Writes" || word == "Next") {
			s.labels = append(s.labels, [2]string{word, oneLine(rest)})
			continue
		}
		last := &s.labels[len(s.labels)-1][1]
		*last += " " + oneLine(line)
	}
}

// says reports whether the head contains a word.
func (s *tableSource) says(word string) bool {
	all := strings.Join(append(append([]string{}, s.text...), s.more...), " ")
	for _, l := range s.labels {
		all += " " + l[1]
	}
	return strings.Contains(all, word)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
