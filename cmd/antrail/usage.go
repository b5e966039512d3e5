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

// hintedError is an error with what to do about it.
type hintedError struct {
	error
	hint string
}

// Hint says what to do.
func (e hintedError) Hint() string { return e.hint }

// usageError is a mistake of the caller that flags and argument counts do not
// catch.
type usageError struct{ error }

// codedError ends the program with a code of the command's own. Without an error in
// it nothing is printed: the command has said it all.
type codedError struct {
	code int
	error
}

// Unwrap is the error, for its hint; nil when there is none.
func (e codedError) Unwrap() error { return e.error }

// Arguments: what is missing has a name, and what is too many is shown.

// noArgs is for commands without arguments. What follows a command that has others
// below it was meant as one of them.
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

// exactly is for commands with as many arguments as names, which are those of their
// usage.
func exactly(names ...string) cobra.PositionalArgs {
	return cobra.MatchAll(upTo(names...), atLeast(names...))
}

// upTo is exactly for commands that take fewer.
func upTo(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("%q is one argument too many: %s; what has spaces in it goes in quotes", args[len(names)], c.UseLine())
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

// exclusive is what cobra says of flags that exclude one another.
var exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.+)\] were all set$`)

// plainText is an error of cobra's in words for who typed the flags; others as they are.
func plainText(err error) string {
	m := exclusive.FindStringSubmatch(err.Error())
	if m == nil {
		return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	}
	return "--" + strings.Join(strings.Fields(m[1]), " and --") + " do not go together"
}
