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
		Short: "Let recorded packets walk today's entries, and report what would change",
		Long: `Let the packets of a recording (antrail trace --live --record FILE) walk the entries of an agent, or of files,
with the recorded answers of conntrack. Nothing is sent, counted or learned. Walks that would differ are printed: the
verdict then and now, and the first entry that differs.

Of a recording of several Nodes, only the walks on one are replayed: on --on, or on --node. Those of other
Nodes are counted.

Exit code 1 means that something would change. -o json has a line for each walk, also for those that would be the
same.`,
		Example: "  antrail trace replay examples/two-nodes/walks.json " + nodeFiles +
			"\n  antrail trace replay -o json examples/two-nodes/walks.json " + nodeFiles,
		Args: exactly("FILE"),
	}
	on := c.Flags().String("on", "", "walks on this Node of the recording (default: the Node of --node)")
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

// walkReplay counts the replayed walks of a recording. Only walks of one Node are replayed,
// because each Node has its own entries.
type walkReplay struct {
	node      string // whose walks; "" for the only Node of the recording
	only      string // that Node
	walks     int
	different int
	others    map[string]int // walks of other Nodes, which are left out
}

// each replays the walks of a packet's way. A fragment's walk after its wait is left out.
// If a recording has several Nodes and none is named, that is an error.
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
			return usageError{fmt.Errorf("the recording has walks on %s and on %s: choose one by --on", r.only, w.Node)}
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

// summary says how many walks were replayed, and which were left out.
func (r *walkReplay) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d walks would be different\n", r.different, r.walks)
	for _, node := range slices.Sorted(maps.Keys(r.others)) {
		fmt.Fprintf(&b, "%d walks on %s were left out; --on %s replays them, on entries of that Node\n", r.others[node], node, node)
	}
	return b.String()
}

// verdict is the error of a replay with differences, or without walks.
func (r *walkReplay) verdict() error {
	switch {
	case r.different > 0:
		return errors.New("today's entries treat recorded packets differently")
	case r.walks == 0 && len(r.others) > 0:
		return fmt.Errorf("the recording has no walk on %s; it has walks on %s: choose one by --on", r.node, strings.Join(slices.Sorted(maps.Keys(r.others)), ", "))
	}
	return nil
}
