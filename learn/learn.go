// Package learn teaches the pipeline by numbered lessons. A lesson has a text, packets to
// send, files to change, and a check that says what is wrong. Its sandbox needs neither
// root nor a network.
//
//	learn.go     a lesson and its parts
//	lessonfiles.go the learner's directory
//	lessonswitch.go from files to entries: the sample cluster, and the learner's entries
//	lessonpackets.go the file of packets
//	plan.go      packets to send, and events between them
//	sandbox.go   switches on memory ports, with a clock that only the sandbox turns
//	visits.go    a packet's way in lines, one or two for each table
//	masks.go     why an entry was not taken
//	conjunction.go  why a conjunction did not match
//	stepper.go   a way, stopping before each table
//	linediff.go  two ways, line by line
//	expect.go    the steps of a check
//	failure.go   the text of a failed check
//	session.go   the commands
//	fold.go      a text in the columns of a terminal
//
// A lesson is data: a directory of lessons/ with
//
//	text.md       the text; its commands and entries are tested
//	lesson.yaml   Nodes, tables, and the check as expectations
//	start/        the learner's files at the beginning
//	solution/     those of them that differ in a solution
//	mistake*/     the same for a common mistake, and says.txt: the check's output
//
// The switch is package dataplane, the one that carries traffic. This package must build
// wherever Go does: it uses no kernel interface.
package learn

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed lessons
var embedded embed.FS

// Lesson is one lesson.
type Lesson struct {
	Number int    `json:"-"` // from 1
	Name   string `json:"-"` // name of its directory: 01-one-table
	Text   string `json:"-"` // Markdown
	Title  string `json:"title"`
	Task   string `json:"task"` // the goal, in a sentence
	// Ports are the ports of a lesson without a cluster, numbered from 1.
	Ports []string `json:"ports"`
	// Program is a program that needs no cluster (package tables/programs). The lesson's
	// switch runs its sample Node.
	Program string `json:"program"`
	// Nodes are the sample cluster's Nodes that have a switch. The learner's entries are on
	// the first one.
	Nodes []string `json:"nodes"`
	// Cluster are files of examples/web-app.
	Cluster []string `json:"cluster"`
	// Tables are the learner's tables: entries of objects or the program are left out
	// there.
	Tables []string `json:"tables"`
	// Wires lead packets that leave by one port back in by another.
	Wires map[string]string `json:"wires"`
	Check []Expectation     `json:"check"`
}

// Lessons are all lessons, in order.
func Lessons() ([]*Lesson, error) {
	dirs, err := embedded.ReadDir("lessons")
	if err != nil {
		return nil, err
	}
	var all []*Lesson
	for _, d := range dirs {
		l, err := readLesson(d.Name())
		if err != nil {
			return nil, fmt.Errorf("lesson %s: %w", d.Name(), err)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *Lesson) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// Find is the lesson of a number.
func Find(number string) (*Lesson, error) {
	all, err := Lessons()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(all) {
		return nil, fmt.Errorf("there is no lesson %q; there are 1 to %d, and antrail learn lists them", number, len(all))
	}
	return all[n-1], nil
}

func readLesson(name string) (*Lesson, error) {
	l := &Lesson{Name: name}
	digits, _, _ := strings.Cut(name, "-")
	var err error
	if l.Number, err = strconv.Atoi(digits); err != nil {
		return nil, err
	}
	text, err := embedded.ReadFile(path.Join("lessons", name, "text.md"))
	if err != nil {
		return nil, err
	}
	l.Text = string(text)
	description, err := embedded.ReadFile(path.Join("lessons", name, "lesson.yaml"))
	if err != nil {
		return nil, err
	}
	return l, yaml.UnmarshalStrict(description, l)
}
