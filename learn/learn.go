// Package learn teaches the pipeline: numbered lessons, each with a text, packets
// to send, files to change and a check that says what is wrong, in a sandbox that
// needs neither root nor a network.
//
//	learn.go     a lesson and what it is made of
//	lessonfiles.go the learner's directory
//	lessonswitch.go from files to entries: the sample cluster, and what the learner writes
//	lessonpackets.go the file of packets
//	plan.go      what is sent, and what happens between packets
//	sandbox.go   switches on memory ports, with a clock that only the sandbox turns
//	visits.go    a packet's way in lines, one or two for each table
//	masks.go     why an entry was not taken
//	conjunction.go  why a conjunction did not come about
//	stepper.go   a way, stopping before each table
//	linediff.go  two ways, line by line
//	expect.go    what a check expects of packets
//	failure.go   what a check says when it was otherwise
//	session.go   what commands do
//	fold.go      a text in the columns that a terminal has
//
// A lesson is data: a directory of lessons/ with
//
//	text.md       what the learner reads; its commands and entries are tested
//	lesson.yaml   Nodes, tables, and the check as expectations
//	start/        the learner's files as they are in the beginning
//	solution/     those of them that differ in a solution
//	mistake*/     the same with a mistake that is easily made, and says.txt: what the check says
//
// The switch is the one that carries traffic (package dataplane); the lessons have
// no other. The package must build wherever Go does: no kernel is asked for anything.
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
	Name   string `json:"-"` // of its directory: 01-one-table
	Text   string `json:"-"` // Markdown
	Title  string `json:"title"`
	Task   string `json:"task"` // what to reach, in a sentence
	// Ports are those of a lesson without a cluster, numbered from 1.
	Ports []string `json:"ports"`
	// Program is a program that needs no cluster (package tables/programs). Its switch is
	// that of the program's sample Node.
	Program string `json:"program"`
	// Nodes are the Nodes of the sample cluster that have a switch; the learner's
	// entries are the first one's.
	Nodes []string `json:"nodes"`
	// Cluster is files of examples/web-app.
	Cluster []string `json:"cluster"`
	// Tables are those whose entries are the learner's: what the objects or the program
	// want there is left out.
	Tables []string `json:"tables"`
	// Wires lead what leaves by a port back in by another.
	Wires map[string]string `json:"wires"`
	Check []Expectation     `json:"check"`
}

// Lessons are all of them, in order.
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
