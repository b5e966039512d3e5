// Package reference lists the commands of antrail with their flags, from the command
// tree itself. The page docs/commands.md and the manual pages are made from the list.
package reference

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is a command as a reference shows it.
type Command struct {
	Path    string // "antrail lab up"
	Use     string // the line with its arguments
	Short   string // one line
	Long    string // the whole text; Short if the command has no other
	Example string // lines, without the indentation
	Flags   []Flag // of this command, in the order of the alphabet
}

// Flag is a flag of a command.
type Flag struct {
	Name      string // without the dashes
	Shorthand string // one letter; "" for none
	Type      string // of the value; "" for a flag without one
	Default   string // "" if that is empty or zero
	Usage     string
}

// List returns root and all commands below it that help shows, in the order of the tree.
func List(root *cobra.Command) (all []Command) {
	root.InitDefaultHelpFlag()
	c := Command{Path: root.CommandPath(), Use: root.UseLine(), Short: root.Short, Long: strings.TrimSpace(root.Long), Flags: flags(root)}
	c.Long = cmp.Or(c.Long, c.Short)
	c.Example = unindent(root.Example)
	all = append(all, c)
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, List(sub)...)
		}
	}
	return all
}

// flags returns the visible flags of a command, without --help.
func flags(c *cobra.Command) (all []Flag) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		flag := Flag{Name: f.Name, Shorthand: f.Shorthand, Type: kind, Default: f.DefValue, Usage: usage}
		switch flag.Default {
		case "false", "0", "0s", "[]":
			flag.Default = ""
		}
		all = append(all, flag)
	})
	return all
}

// unindent removes the blanks that examples have in front.
func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Markdown returns the list as a page with a section for each command. head comes before
// the first one.
func Markdown(head string, all []Command) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n| command | does |\n|---|---|\n")
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.Path, strings.ReplaceAll(c.Path, " ", "-"), c.Short)
	}
	for _, c := range all {
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n\n%s\n```\n", c.Path, c.Use, c.Long)
		if c.Example != "" {
			fmt.Fprintf(&b, "\nExamples:\n\n```text\n%s\n```\n", c.Example)
		}
		if len(c.Flags) > 0 {
			b.WriteString("\n| flag | value | default | does |\n|---|---|---|---|\n")
		}
		for _, f := range c.Flags {
			b.WriteString(f.row())
		}
	}
	return b.String()
}

// row returns the flag as a line of a Markdown table.
func (f Flag) row() string {
	name, value := "`--"+f.Name+"`", ""
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if f.Default != "" {
		value = "`" + f.Default + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", name, f.Type, value, strings.ReplaceAll(f.Usage, "|", `\|`))
}
