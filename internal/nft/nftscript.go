// Package nft writes nftables rules. A Script has the commands for any number of tables;
// one call of nft(8) applies all of them or none.
package nft

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"
)

// timeout bounds one call of nft(8).
const timeout = 5 * time.Second

// Priorities of base chains, as numbers: nft(8) takes the names for some hooks only.
const (
	Raw    = -300
	Mangle = -150
	DNAT   = -100
	Filter = 0
	SNAT   = 100
)

// Script is a list of commands in the words of nft(8). The zero value has none.
type Script struct{ text strings.Builder }

// Table is a table that a script's commands are about.
type Table struct {
	script *Script
	name   string // family and name
}

// Table names one by family and name.
func (s *Script) Table(family, name string) Table { return Table{s, family + " " + name} }

// Run applies the commands to the calling thread's network namespace. The error is fs.ErrNotExist
// if an object does not exist.
func (s *Script) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(s.text.String())
	_, err := cmd.Output()
	return said(err)
}

// said is an error in the words of nft(8), which are English in every locale.
func said(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	text := strings.TrimSpace(string(exit.Stderr))
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "No such file or directory") {
		return fmt.Errorf("%w: %s", fs.ErrNotExist, text)
	}
	return errors.New(text)
}

// List is what a table has, without the values of its counters. It is empty if the table
// is not there. Of two tables that one call lists, nft(8) 1.0.6 finds the last only.
func List(family, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nft", "--stateless", "list", "table", family, name).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// line adds a command about an object of the table.
func (t Table) line(verb string, words ...any) {
	t.script.text.WriteString(verb + " " + t.name)
	for _, w := range words {
		fmt.Fprint(&t.script.text, " ", w)
	}
	t.script.text.WriteByte('\n')
}

// Remove deletes the table, or does nothing if it is not there.
func (t Table) Remove() {
	t.line("add table")
	t.Delete()
}

// Delete deletes the table, which must be there.
func (t Table) Delete() { t.line("delete table") }

// Add makes the table, with a comment.
func (t Table) Add(comment string) { t.line("add table", fmt.Sprintf("{ comment %q ; }", comment)) }

// Chain adds a base chain: its type, its hook, with a device for hooks that are of one,
// and its priority.
func (t Table) Chain(name, kind, hook string, priority int) {
	t.line("add chain", name, fmt.Sprintf("{ type %s hook %s priority %d ; }", kind, hook, priority))
}

// Rule adds a rule to the end of a chain.
func (t Table) Rule(chain string, words ...any) {
	t.line("add rule", append([]any{chain}, words...)...)
}

// Set adds a set: what its elements are, and flags if it has some.
func (t Table) Set(name, kind string, flags ...string) {
	text := "type " + kind + " ;"
	if len(flags) > 0 {
		text += " flags " + strings.Join(flags, ",") + " ;"
	}
	t.line("add set", name, "{", text, "}")
}

// Map adds a map: what it maps to what.
func (t Table) Map(name, kind string) { t.line("add map", name, "{ type", kind, "; }") }

// Counter adds a counter that rules name.
func (t Table) Counter(name string) { t.line("add counter", name) }

// FlushSet empties a set.
func (t Table) FlushSet(name string) { t.line("flush set", name) }

// FlushMap empties a map.
func (t Table) FlushMap(name string) { t.line("flush map", name) }

// Element adds one to a set: the parts of its key.
func (t Table) Element(set string, key ...string) {
	t.line("add element", set, "{", strings.Join(key, " . "), "}")
}

// Entry adds one to a map.
func (t Table) Entry(name, key, value string) { t.line("add element", name, "{", key, ":", value, "}") }
