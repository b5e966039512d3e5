package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/antrail/antrail/internal/terminal"
	"github.com/antrail/antrail/learn"
	"github.com/spf13/cobra"
)

// lessonsEnv is the environment variable for the default of --dir.
const lessonsEnv = "ANTRAIL_LESSONS"

func learnCommand() *cobra.Command {
	var dir string
	var list, check, step bool
	c := &cobra.Command{
		Use:   "learn [LESSON [" + strings.Join(learn.Verbs, " | ") + "] [WORD...]]",
		Short: "Learn the pipeline: lessons in a sandbox that needs no root and no network",
		Long: `Learn the pipeline, lesson by lesson. The switch is the real one, with the sample cluster of
examples/web-app. Its ports are in memory and its clock stands still, so it needs no setup and can
break nothing.

antrail learn 1 prints the first lesson and makes the directory antrail-lessons/01-… (or below --dir)
with its files: entries.flows or objects.yaml to change, packets to send. Then

  antrail learn 1 send [WORD...]      sends packets and shows their way, a line for each table; a word is
                                      a packet's name, restart (new switches with the connections),
                                      forget (without them) or wait=30s (turns the clock)
  antrail learn 1 --step              the same, stopping before each table: the packet, its registers,
                                      and the entries that may match it (Enter goes on, q quits)
  antrail learn 1 compare [WORD...]   shows what your files change in it
  antrail learn 1 dump [TABLE [TEXT]] prints the entries in force, as dump-flows does
  antrail learn 1 check               says whether you are done, and if not, what is wrong
  antrail learn 1 reset               makes the files again
  antrail learn 1 solution            prints a solution

If something is wrong, check exits with 1.`,
		Example: "  antrail learn\n  antrail learn 1\n  antrail learn 1 send\n  antrail learn 1 --check\n  antrail learn 14 send shop answer restart ack",
	}
	f := c.Flags()
	f.StringVar(&dir, "dir", lessonsDir(), "directory for the lessons' files; "+lessonsEnv+" sets the default")
	f.BoolVar(&list, "list", false, "list the lessons, and which are done; as without arguments")
	f.BoolVar(&check, "check", false, "as check")
	f.BoolVar(&step, "step", false, "send, stopping before each table")
	c.MarkFlagsMutuallyExclusive("check", "step", "list")
	c.MarkFlagDirname("dir")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || list {
			return learn.List(dir, c.OutOrStdout())
		}
		l, err := learn.Find(args[0])
		if err != nil {
			return usageError{err}
		}
		s := &learn.Session{Lesson: l, Root: dir, Out: c.OutOrStdout(), Width: terminal.Columns(c.OutOrStdout())}
		verb, words := verbOf(args[1:])
		var stepper *learn.Stepper
		switch {
		case check:
			verb = "check"
		case step:
			verb, stepper = "send", newStepper(c)
		}
		err = s.Do(verb, words, stepper)
		if errors.Is(err, learn.ErrUnknownWord) {
			return usageError{err}
		}
		return lessonsDirError(err)
	}
	return c
}

// lessonsDirError adds a hint to an error about the lessons' files. Lessons need no root,
// but a writable directory.
func lessonsDirError(err error) error {
	var file *fs.PathError
	if !errors.As(err, &file) {
		return err
	}
	return hintedError{fmt.Errorf("the lesson's files cannot be read or written: %w", err),
		"Name a writable directory: antrail learn 1 --dir ~/antrail-lessons; " + lessonsEnv + " sets it for all commands."}
}

// verbOf splits arguments into a verb, "" for the lesson's text, and its words.
func verbOf(args []string) (verb string, words []string) {
	if len(args) > 0 && slices.Contains(learn.Verbs, args[0]) {
		return args[0], args[1:]
	}
	return "", args
}

// newStepper reads from standard input, and prompts on a terminal.
func newStepper(c *cobra.Command) *learn.Stepper {
	s := &learn.Stepper{In: bufio.NewReader(c.InOrStdin()), Out: c.OutOrStdout()}
	if f, ok := c.InOrStdin().(*os.File); ok {
		if stat, err := f.Stat(); err == nil && stat.Mode()&os.ModeCharDevice != 0 {
			s.Ask = "Enter, or q: "
		}
	}
	return s
}

func lessonsDir() string {
	if d := os.Getenv(lessonsEnv); d != "" {
		return d
	}
	return "antrail-lessons"
}
