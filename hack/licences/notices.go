package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// head is how the file begins.
const head = `Third-party notices

The programs antrail and antrail-cni link the Go modules below. Each module's licence
files follow, every text once. "make licences" writes this file from the modules that
the programs link; do not edit it.

`

// passage is one text of a licence or a notice, and the files that have it.
type passage struct {
	text  string
	files []string
}

// notices writes the file: a list of modules with their licences, then the texts.
func notices(mods []*module) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(head)
	var passages []*passage
	for _, m := range mods {
		names, err := m.read(&passages)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s: %s\n", m, strings.Join(names, ", "))
	}
	for _, p := range passages {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(p.files, "\n"), p.text)
	}
	return b.Bytes(), nil
}

// String is a module as the list names it.
func (m *module) String() string { return strings.TrimSpace(m.path + " " + m.version) }

// read adds a module's files to the passages and returns its licences. A module without a licence
// is an error. So is a licence file whose licence is unknown or not allowed. A notice need not
// have a licence.
func (m *module) read(passages *[]*passage) (names []string, err error) {
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		inside, err := filepath.Rel(m.root, file)
		if err != nil {
			return nil, err
		}
		found, err := m.classify(inside, string(content))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
		addPassage(passages, m.String()+", "+filepath.ToSlash(inside), string(content))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no licence file: antrail must not link it", m)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// classify returns the licences of one file of a module, or why it is refused.
func (m *module) classify(file, content string) ([]string, error) {
	found := identify(content)
	for _, name := range found {
		if !allowed[name] {
			return nil, fmt.Errorf("%s has the licence %s in its file %s, which is not in the list of allowed licences (hack/licences/identify.go)", m, name, file)
		}
	}
	if len(found) == 0 && !isNotice(file) {
		return nil, fmt.Errorf("%s has an unknown licence in its file %s: read it, and add it to hack/licences/identify.go", m, file)
	}
	return found, nil
}

// isNotice reports whether a file names copyright holders and need not have a licence.
func isNotice(file string) bool {
	base := strings.ToLower(filepath.Base(file))
	return strings.HasPrefix(base, "notice") || strings.HasPrefix(base, "copyright")
}

// addPassage records that a file has a text. Texts that differ in white space only are one.
func addPassage(passages *[]*passage, file, text string) {
	same := func(p *passage) bool { return slices.Equal(strings.Fields(p.text), strings.Fields(text)) }
	if at := slices.IndexFunc(*passages, same); at >= 0 {
		if !strings.HasPrefix(file, "Go, ") { // which modules Go has copies of differs between its versions
			(*passages)[at].files = append((*passages)[at].files, file)
		}
		return
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	*passages = append(*passages, &passage{strings.Trim(strings.Join(lines, "\n"), "\n"), []string{file}})
}
