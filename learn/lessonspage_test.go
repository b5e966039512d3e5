package learn

import (
	"fmt"
	"strings"
)

// lessonsPage is the page docs/learn.md, which lists the lessons.
func lessonsPage(all []*Lesson) string {
	var b strings.Builder
	b.WriteString(preface)
	for _, l := range all {
		fmt.Fprintf(&b, "| %d | [%s](../learn/lessons/%s/text.md) | %s | %s |\n", l.Number, l.Title, l.Name, l.changes(), l.Task)
	}
	b.WriteString(afterword)
	return b.String()
}

// changes is what the learner changes.
func (l *Lesson) changes() string {
	if len(l.Tables) == 0 && len(l.Nodes) > 0 {
		return "objects"
	}
	if len(l.Ports) > 0 {
		return "a table of three entries"
	}
	return strings.Join(l.Tables, ", ")
}

const preface = `# Learn the pipeline

` + "`antrail learn`" + ` is a course in a sandbox: the switch that carries traffic elsewhere, with the sample cluster of
[examples/web-app](../examples/web-app), on ports in memory and a clock that stands still. It needs no root, no network and no
cluster, and builds for Linux, macOS and Windows. Each lesson has a text, packets to send, files to change, and a check that says what
is wrong. Each word is explained where a lesson needs it first; all of them stand in [Read the pipeline](reading.md#words).

` + "```sh" + `
bin/antrail learn --dir /tmp/antrail-lessons                # the list
bin/antrail learn 1 --dir /tmp/antrail-lessons              # the text, and files in /tmp/antrail-lessons/01-one-table
bin/antrail learn 1 send to-db --dir /tmp/antrail-lessons   # a packet's way, table by table
bin/antrail learn 1 --step --dir /tmp/antrail-lessons </dev/null
echo 'table=Switch, priority=110,ip,in_port=client,nw_dst=10.10.0.25 actions=output:db' >>/tmp/antrail-lessons/01-one-table/entries.flows
bin/antrail learn 1 compare to-db --dir /tmp/antrail-lessons
bin/antrail learn 1 check --dir /tmp/antrail-lessons
` + "```" + `

Without ` + "`--dir`" + ` the files are in ` + "`antrail-lessons`" + ` of the current directory. ` + "`learn N reset`" + ` starts a lesson again, ` + "`learn N solution`" + `
shows one way to solve it, ` + "`learn N dump [TABLE]`" + ` prints the entries in force. Between packets, ` + "`send`" + ` also takes events: ` + "`restart`" + ` (new
switches, with the connections), ` + "`forget`" + ` (without), ` + "`wait=30s`" + ` (the clock):

` + "```sh" + `
bin/antrail learn 14 send shop answer restart ack --dir /tmp/antrail-lessons
` + "```" + `

| | lesson | you change | your task |
|---|---|---|---|
`

const afterword = `
` + "`go test ./learn`" + ` runs the commands of the texts and compares their output. Each lesson's solution passes its check.
An easy mistake fails it with the words in ` + "`learn/lessons/*/mistake*/says.txt`" + `.

## A lesson of your own

A lesson is a directory of ` + "`learn/lessons`" + `: ` + "`text.md`" + `, ` + "`lesson.yaml`" + ` with the check as expectations of packets, and the files of the beginning,
of a solution and of mistakes. ` + "`go test ./learn -update`" + ` fills in what commands print and what the check says; read it before you keep it.
`
