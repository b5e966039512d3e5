package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// hintedError is an error with a hint.
type hintedError struct {
	error
	hint string
}

// Hint says what to do next.
func (e hintedError) Hint() string { return e.hint }

// usageError is a usage error that flags and argument counts do not catch.
type usageError struct{ error }

// codedError ends the program with the command's own code. Without an error nothing is
// printed.
type codedError struct {
	code int
	error
}

// Unwrap is the error, for its hint; nil if there is none.
func (e codedError) Unwrap() error { return e.error }

// Arguments: errors name missing arguments and show excess ones.

// noArgs is for commands without arguments. If the command has subcommands, an argument is
// an unknown subcommand.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 || !c.HasSubCommands() {
		return exactly()(c, args)
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), flow.Suggest(args[0], names))
}

// exactly is for commands with exactly these arguments, by their names in the usage.
func exactly(names ...string) cobra.PositionalArgs {
	return cobra.MatchAll(upTo(names...), atLeast(names...))
}

// upTo is exactly for commands that take fewer.
func upTo(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("%q is one argument too many: %s; quote an argument with spaces", args[len(names)], c.UseLine())
		}
		return nil
	}
}

// atLeast is exactly for commands that take more.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch missing := names[min(len(args), len(names)):]; len(missing) {
		case 0:
			return nil
		case 1:
			return fmt.Errorf("%s is missing: %s", missing[0], c.UseLine())
		default:
			return fmt.Errorf("%s are missing: %s", strings.Join(missing, " and "), c.UseLine())
		}
	}
}

// exclusive is cobra's error about flags that exclude one another.
var exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.+)\] were all set$`)

// plainText puts cobra's errors in plain words. Other errors stay as they are.
func plainText(err error) string {
	m := exclusive.FindStringSubmatch(err.Error())
	if m == nil {
		return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	}
	return "--" + strings.Join(strings.Fields(m[1]), " and --") + " exclude each other"
}
