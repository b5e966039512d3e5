//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

// traceShowCommand prints a recording.
func traceShowCommand(name, form, short string) *cobra.Command {
	c := &cobra.Command{
		Use:     name + " FILE",
		Short:   short,
		Example: "  antrail trace " + name + " examples/two-nodes/walks.json",
		Args:    cobra.ExactArgs(1),
	}
	var write string
	if name == "show" {
		c.Flags().StringVarP(&form, "output", "o", form, "one of "+strings.Join(trace.Forms(), ", "))
		addWrite(c, &write)
		c.Example += "\n  antrail trace show -o pcapng -w walks.pcapng examples/two-nodes/walks.json"
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		p, end, err := formTo(c, form, write)
		if err != nil {
			return err
		}
		return errors.Join(trace.Read(f, p.Print), p.End(), end())
	}
	return c
}

// addWrite adds the flag that says where walks go.
func addWrite(c *cobra.Command, write *string) {
	c.Flags().StringVarP(write, "write", "w", "", "write to this file; - is standard output, for a capture that is piped on")
	c.MarkFlagFilename("write")
}

// formTo is a printer in a form to a file, or to standard output ("" or -), and what
// ends the file. A capture goes to standard output only when that was asked for.
func formTo(c *cobra.Command, form, path string) (p trace.Printer, end func() error, err error) {
	if form == trace.FormPcapng && path == "" {
		return nil, nil, usageError{errors.New("a capture is not for reading: give -w FILE, or -w - for a pipe")}
	}
	if path == "" || path == "-" {
		p, err = trace.NewPrinter(form, c.OutOrStdout())
		return p, func() error { return nil }, asUsage(err)
	}
	if _, err := trace.NewPrinter(form, nil); err != nil {
		return nil, nil, asUsage(err)
	}
	f, err := openLate(path)
	if err != nil {
		return nil, nil, err
	}
	p, err = trace.NewPrinter(form, f)
	return p, f.Close, err
}

// lateFile is a file to write that keeps what it had until the first byte is written, or
// it is closed without: what cannot begin costs nobody an older capture.
type lateFile struct {
	file  *os.File
	begun bool
}

func openLate(path string) (*lateFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	return &lateFile{file: f}, nil
}

func (f *lateFile) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	st, err := f.file.Stat()
	if err != nil || !st.Mode().IsRegular() { // a pipe has nothing to be cut
		return err
	}
	return f.file.Truncate(0)
}

func (f *lateFile) Write(b []byte) (int, error) {
	if err := f.begin(); err != nil {
		return 0, err
	}
	return f.file.Write(b)
}

// Close makes the file what was written, if it is nothing.
func (f *lateFile) Close() error { return errors.Join(f.begin(), f.file.Close()) }

// asUsage is an error of how a command was called, nil for none.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// traceReplayCommand compares a recording with today's entries.
func traceReplayCommand() *cobra.Command {
	var from source
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Have recorded packets walk today's entries, and tell what would change",
		Long: `Have the packets of a recording (antrail trace --live --record FILE) walk the entries of an agent, or of
files, with the answers that conntrack gave them when they were recorded. Nothing is sent, counted or
learned. Walks that would be different are printed: the verdict then and now, and the first entry that
is another one. Of a recording of several Nodes --on says whose walks are meant.

Exit code 1 says that something would change. -o json has a line for each walk, also for those that would
be the same.`,
		Example: "  antrail trace replay examples/two-nodes/walks.json " + nodeFiles +
			"\n  antrail trace replay -o json examples/two-nodes/walks.json " + nodeFiles,
		Args: cobra.ExactArgs(1),
	}
	on := c.Flags().String("on", "", "only walks on this Node of the recording")
	from.addTo(c)
	c.Flags().Lookup("output").Usage = "text or json"
	c.RunE = func(c *cobra.Command, args []string) error {
		tell, total := (*agent.Replayed).WriteText, c.OutOrStdout()
		switch from.output {
		case "text":
		case "json":
			tell, total = (*agent.Replayed).WriteJSON, c.ErrOrStderr()
		default:
			return usageError{errors.New("--output is text or json")}
		}
		client, err := from.client(c.ErrOrStderr())
		if err != nil {
			return err
		}
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		walks, other := 0, 0
		err = trace.Read(f, func(way trace.Joined) error {
			for _, w := range way {
				if w.Resumed || *on != "" && w.Node != *on {
					continue
				}
				r, err := client.ReplayWalk(c.Context(), w)
				if err != nil {
					return err
				}
				if walks++; !r.Same() {
					other++
				}
				if err := tell(r, c.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Fprintf(total, "%d of %d walks would be different\n", other, walks)
		if err == nil && other > 0 {
			err = errors.New("today's entries treat recorded packets differently")
		}
		return err
	}
	return c
}
