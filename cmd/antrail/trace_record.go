//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

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
		Args: exactly("FILE"),
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
		err = eachWalk(f, *on, func(w *trace.Walk) error {
			r, err := client.ReplayWalk(c.Context(), w)
			if err != nil {
				return err
			}
			if walks++; !r.Same() {
				other++
			}
			return tell(r, c.OutOrStdout())
		})
		fmt.Fprintf(total, "%d of %d walks would be different\n", other, walks)
		if err == nil && other > 0 {
			err = errors.New("today's entries treat recorded packets differently")
		}
		return err
	}
	return c
}

// eachWalk hands the walks of a recording to do, those on one Node when it is named. The
// rest of a fragment's way, after it waited, is left out.
func eachWalk(recording io.Reader, node string, do func(*trace.Walk) error) error {
	return trace.Read(recording, func(way trace.Joined) error {
		for _, w := range way {
			if w.Resumed || node != "" && w.Node != node {
				continue
			}
			if err := do(w); err != nil {
				return err
			}
		}
		return nil
	})
}
