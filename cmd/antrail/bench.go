//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/antrail/antrail/bench"
	"github.com/antrail/antrail/bench/conntrack"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/spf13/cobra"
)

// benchLong is the help text before the list of profiles.
const benchLong = `Measure antrail's datapath against others on this machine. It makes network namespaces, contenders and traffic,
measures all contenders of a profile in turn, round after round, and prints the median of the rounds, their extremes and
the median of each round's ratio to the first contender. It names contenders that the machine lacks, and leaves them out.
It says before and after the run if other programs keep the machine busy, and runs at the highest ordinary priority. On
^C it prints the results of the rounds so far. It needs root and no cluster.

--time is divided among the profiles by their weights; time that one does not use goes to the later ones. It includes
opening contenders. A profile begins another round if that will end in time, and runs one in any case.

Profiles with their weights; without arguments those with a star run; "all" runs all of them, in some minutes:
`

const saveUsage = "directory to write bench.json, bench.md and a plot of each profile to"

func benchCommand() *cobra.Command {
	var o rig.Options
	var format, dir string
	var profiles strings.Builder
	bench.Describe(&profiles)
	c := &cobra.Command{
		Use:     "bench [PROFILE...]",
		Short:   "Measure the datapath against others, side by side",
		Long:    benchLong + strings.TrimRight(profiles.String(), "\n"),
		Example: "  antrail bench\n  antrail bench all --time 10m --save results\n  antrail bench stream rr --time 1m -o markdown\n  antrail bench stream --contenders bridge,offload --time 20s\n  antrail bench stream --contenders bridge,bare,'antrail afpacket' --time 20s\n  antrail bench pipeline --save before\n  antrail bench compare before after",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.Profiles = args
			if err := errors.Join(bench.Check(o), report.CheckFormat(format)); err != nil {
				return usageError{err}
			}
			if err := sched.TakePrecedence(); err != nil {
				fmt.Fprintln(c.ErrOrStderr(), "cannot take precedence over other programs:", err)
			}
			result, err := bench.Run(c.Context(), o, c.ErrOrStderr())
			if result == nil {
				return err
			}
			return errors.Join(err, output(c.OutOrStdout(), result, format, dir))
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "what to print: "+strings.Join(report.Formats, ", "))
	c.Flags().StringVar(&dir, "save", "", saveUsage)
	c.Flags().StringSliceVar(&o.Contenders, "contenders", nil, "only contenders whose names contain one of these, such as \"bridge,offload\"; ratios are to the first of them")
	c.Flags().DurationVar(&o.Time, "time", 2*time.Minute, "about how long the run takes; each contender runs once in any case")
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "how many times each contender runs at least, however long that takes (default: as often as --time allows)")
	c.Flags().DurationVar(&o.Window, "window", 200*time.Millisecond, "how long traffic flows for one figure")
	c.Flags().IntVar(&o.Largest, "largest", 100_000, "the end of sweeps of policy rules, Services and connections; earlier if time runs out")
	c.AddCommand(benchConntrackCommand(), benchCompareCommand(), benchTrendCommand())
	return c
}

// output prints a result, and saves it when dir is not empty.
func output(w io.Writer, r *rig.Result, format, dir string) error {
	err := r.Write(w, format)
	if dir != "" {
		err = errors.Join(err, r.Save(dir))
	}
	return err
}

func benchCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two saved runs by benchstat's statistics",
		Long: `Compare two runs, each a directory of bench --save or a file of bench -o json: medians with 95 % confidence intervals,
the change, and the probability p that it is chance (Mann-Whitney U test). A change that may be chance is shown as ~;
with fewer than four rounds each it always may be.`,
		Example: "  antrail bench compare before after\n  antrail bench compare before.json after.json",
		Args:    exactly("A", "B"),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := rig.Load(args[0])
			if err != nil {
				return fmt.Errorf("first: %w", err)
			}
			b, err := rig.Load(args[1])
			if err != nil {
				return fmt.Errorf("second: %w", err)
			}
			return rig.Compare(c.OutOrStdout(), a, b)
		},
	}
}

func benchTrendCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "trend DIR",
		Short: "Show how figures changed over saved runs",
		Long: `Print the medians of all runs in a directory, the oldest first, with the change from the first to the last. Each run is a
directory of bench --save in DIR, or a file of bench -o json, and has its name in the table: name it after the version
that was measured. With --save, each profile gets a plot.

A change may be chance or the machine's: antrail bench compare has the statistics of two runs.`,
		Example: "  antrail bench stream --save runs/v1.0\n  antrail bench stream --save runs/v1.1\n  antrail bench trend runs --save runs/plots",
		Args:    exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			runs, err := rig.LoadRuns(args[0])
			if err != nil {
				return err
			}
			if dir != "" {
				if err := rig.SaveTrend(dir, runs); err != nil {
					return err
				}
			}
			return rig.WriteTrend(c.OutOrStdout(), runs)
		},
	}
	c.Flags().StringVar(&dir, "save", "", "directory to write a plot trend-PROFILE.svg of each profile to")
	return c
}

func benchConntrackCommand() *cobra.Command {
	var o conntrack.Options
	var format, dir string
	c := &cobra.Command{
		Use:   "conntrack",
		Short: "Connection tracking alone, antrail's and that of Open vSwitch",
		Long: `Measure connection tracking: known and new connections by the size of the table and with two workers, memory, sweep,
restart, and what refused connections cost; antrail's and, where it is installed, that of Open vSwitch's userspace
datapath, in turns. Progress goes to the standard error. Open vSwitch's side needs root.`,
		Example: "  antrail bench conntrack\n  antrail bench conntrack --rounds 5 --save results",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(o.Check(), report.CheckFormat(format)); err != nil {
				return usageError{err}
			}
			result, err := conntrack.Run(c.Context(), o, c.ErrOrStderr())
			if err != nil {
				return err
			}
			return output(c.OutOrStdout(), result, format, dir)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", strings.Join(report.Formats, ", "))
	c.Flags().StringVar(&dir, "save", "", saveUsage)
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "rounds of each side (default 3)")
	c.Flags().IntVar(&o.Entries, "entries", 0, "connections of a large table (default 1000000)")
	c.Flags().IntVar(&o.Packets, "packets", 0, "packets per figure (default 200000)")
	return c
}
