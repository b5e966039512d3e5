package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
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
is another one.

Of a recording of several Nodes only the walks on one are replayed: on --on, or on --node. Those of other
Nodes are counted.

Exit code 1 says that something would change. -o json has a line for each walk, also for those that would
be the same.`,
		Example: "  antrail trace replay examples/two-nodes/walks.json " + nodeFiles +
			"\n  antrail trace replay -o json examples/two-nodes/walks.json " + nodeFiles,
		Args: exactly("FILE"),
	}
	on := c.Flags().String("on", "", "walks on this Node of the recording; the Node of --node when not given")
	from.addTo(c)
	c.Flags().Lookup("output").Usage = "text or json"
	c.RunE = func(c *cobra.Command, args []string) error {
		tell, total := (*api.Replayed).WriteText, c.OutOrStdout()
		switch from.output {
		case "text":
		case "json":
			tell, total = (*api.Replayed).WriteJSON, c.ErrOrStderr()
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
		r := walkReplay{node: cmp.Or(*on, from.node), others: map[string]int{}}
		err = trace.Read(f, func(way trace.Joined) error {
			return r.each(way, func(w *trace.Walk) (*api.Replayed, error) {
				now, err := client.ReplayWalk(c.Context(), w)
				if err == nil {
					err = tell(now, c.OutOrStdout())
				}
				return now, err
			})
		})
		fmt.Fprint(total, r.summary())
		return cmp.Or(err, r.verdict())
	}
	return c
}

// walkReplay counts the walks of a recording that are replayed. Entries of one Node say
// nothing of another Node's walks, so only those of one Node are.
type walkReplay struct {
	node      string // whose walks; "" for the only Node of the recording
	only      string // that Node
	walks     int
	different int
	others    map[string]int // walks of other Nodes, which are left out
}

// each has the walks of a packet's way replayed. The rest of a fragment's way, after it
// waited, is left out. A recording of several Nodes is an error if no Node is named.
func (r *walkReplay) each(way trace.Joined, replay func(*trace.Walk) (*api.Replayed, error)) error {
	for _, w := range way {
		if w.Resumed {
			continue
		}
		if r.node != "" && w.Node != "" && w.Node != r.node {
			r.others[w.Node]++
			continue
		}
		if r.only = cmp.Or(r.only, w.Node); w.Node != "" && w.Node != r.only {
			return usageError{fmt.Errorf("the recording has walks on %s and on %s: --on says whose are meant", r.only, w.Node)}
		}
		now, err := replay(w)
		if err != nil {
			return err
		}
		if r.walks++; !now.Same() {
			r.different++
		}
	}
	return nil
}

// summary says how many walks were replayed, and whose were not.
func (r *walkReplay) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d walks would be different\n", r.different, r.walks)
	for _, node := range slices.Sorted(maps.Keys(r.others)) {
		fmt.Fprintf(&b, "%d walks on %s were left out; --on %s replays them, on entries of that Node\n", r.others[node], node, node)
	}
	return b.String()
}

// verdict is the error of a replay that found something, or of one that had nothing to
// replay.
func (r *walkReplay) verdict() error {
	switch {
	case r.different > 0:
		return errors.New("today's entries treat recorded packets differently")
	case r.walks == 0 && len(r.others) > 0:
		return fmt.Errorf("the recording has no walk on %s; it has walks on %s: --on says whose are meant", r.node, strings.Join(slices.Sorted(maps.Keys(r.others)), ", "))
	}
	return nil
}
