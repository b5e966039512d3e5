package main

import (
	"errors"
	"os"
	"strings"

	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

// Recordings of a Node can be read anywhere.

// showCommands print recordings.
func showCommands() []*cobra.Command {
	return []*cobra.Command{
		traceShowCommand("show", trace.FormTree, "Print recorded walks"),
		traceShowCommand("paths", trace.FormPaths, "Print the different ways of recorded walks, with the packets of each"),
	}
}

// traceShowCommand prints a recording.
func traceShowCommand(name, form, short string) *cobra.Command {
	c := &cobra.Command{
		Use:     name + " FILE",
		Short:   short,
		Example: "  antrail trace " + name + " examples/two-nodes/walks.json",
		Args:    exactly("FILE"),
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

// addWrite adds the flag for the output file.
func addWrite(c *cobra.Command, write *string) {
	c.Flags().StringVarP(write, "write", "w", "", "file to write; - is standard output, for a pipe")
	c.MarkFlagFilename("write")
}

// formTo is a printer in a form to a file, or to standard output for "" or -. end closes
// the file. A capture goes to standard output only for -.
func formTo(c *cobra.Command, form, path string) (p trace.Printer, end func() error, err error) {
	if form == trace.FormPcapng && path == "" {
		return nil, nil, usageError{errors.New("a capture is binary: use -w FILE, or -w - for a pipe")}
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

// lateFile is a file that keeps its old content until the first write or Close. So a
// command that fails before its first packet does not destroy an older capture.
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

func (f *lateFile) truncateOnce() error {
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
	if err := f.truncateOnce(); err != nil {
		return 0, err
	}
	return f.file.Write(b)
}

// Close closes the file, truncated if nothing was written.
func (f *lateFile) Close() error { return errors.Join(f.truncateOnce(), f.file.Close()) }

// asUsage makes an error a usage error; nil stays nil.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
