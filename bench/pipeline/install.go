package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"golang.org/x/sys/unix"
)

// Installing is measured from the text of entries to the moment when packets meet them.

const (
	bundleSize  = 10_000 // entries of the bundle
	singleSize  = 1000   // further entries, installed one by one
	installMark = 0xbe9c // cookie of both
)

// installNotes say how installing is measured.
var installNotes = []string{
	"The installed entries are those of policy rules. The time runs from text to installed: 10,000 entries in one bundle, then 1,000 more one by one.",
	"antrail parses and applies them in the same process. Open vSwitch gets them from ovs-ofctl add-flows, with and without --bundle.",
	"Processor time of installing is that of all threads. For Open vSwitch, it includes ovs-ofctl and leaves out the polling thread.",
}

// installTest is the entries to install, as lines of a dump.
type installTest struct{ bundle, single []string }

// newInstallTest makes entries of rules of policies.
func newInstallTest(names *flow.Names) (*installTest, error) {
	var lines []string
	for first := 0; len(lines) < bundleSize+singleSize; first += workload.RulesOfPriority {
		entries, err := workload.RuleEntries(names, first, workload.RulesOfPriority)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			e.Cookie = installMark
			lines = append(lines, strings.TrimSpace(e.Text(flow.Format{})))
		}
	}
	return &installTest{lines[:bundleSize], lines[bundleSize : bundleSize+singleSize]}, nil
}

// installTime is how long entries took to install: by the clock, and in processor time.
type installTime struct{ took, busy time.Duration }

// measureInstall installs the entries and removes them again.
func (n *installTest) measureInstall(ctx context.Context, w contender) ([]rig.Reading, error) {
	bundle, err := w.installEntries(ctx, n.bundle, true)
	if err != nil {
		return nil, fmt.Errorf("a bundle of %d entries: %w", len(n.bundle), err)
	}
	single, err := w.installEntries(ctx, n.single, false)
	if err := errors.Join(err, w.removeInstalled(ctx)); err != nil {
		return nil, fmt.Errorf("%d entries one by one: %w", len(n.single), err)
	}
	return append(bundle.installReadings("entries installed in one bundle", len(n.bundle)),
		single.installReadings("entries installed one by one", len(n.single))...), nil
}

// installReadings are the figures of n entries.
func (i installTime) installReadings(name string, n int) []rig.Reading {
	return []rig.Reading{
		{Name: name, Unit: "1/s", Value: float64(n) / i.took.Seconds()},
		{Name: name + ", processor time of each", Unit: "µs", Value: float64(i.busy.Nanoseconds()) / 1e3 / float64(n)},
	}
}

// installEntries parses and applies entries.
func (w *antrailContender) installEntries(_ context.Context, lines []string, bundle bool) (i installTime, err error) {
	busy, start := processTime(), time.Now()
	batch := 1
	if bundle {
		batch = len(lines)
	}
	for part := range slices.Chunk(lines, batch) {
		b := new(flow.Bundle)
		for _, line := range part {
			e, err := parse.Entry(line, w.program.sw.Names())
			if err != nil {
				return i, err
			}
			b.Add = append(b.Add, e)
		}
		if err := w.program.sw.Apply(b); err != nil {
			return i, err
		}
	}
	return installTime{time.Since(start), processTime() - busy}, nil
}

// removeInstalled removes entries by their cookie.
func (w *antrailContender) removeInstalled(context.Context) error {
	b := new(flow.Bundle)
	for _, f := range w.program.sw.Flows() {
		if f.Cookie == installMark {
			b.Delete = append(b.Delete, f.Entry)
		}
	}
	return w.program.sw.Apply(b)
}

// processTime is the processor time of all threads of this process, ended ones included.
func processTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// installEntries runs ovs-ofctl add-flows.
func (w *ovsContender) installEntries(ctx context.Context, lines []string, bundle bool) (i installTime, err error) {
	file := w.Path("install")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return i, err
	}
	args := []string{"-OOpenFlow15", "add-flows", w.Path("br0.mgmt"), file}
	if bundle {
		args = append(args, "--bundle")
	}
	busy, err := w.otherThreadsTime()
	if err != nil {
		return i, err
	}
	cmd := exec.CommandContext(ctx, "ovs-ofctl", args...)
	cmd.Env = w.Environment()
	said, err := cmd.StderrPipe()
	start := time.Now()
	if err = errors.Join(err, cmd.Start()); err != nil {
		return i, err
	}
	text, _ := io.ReadAll(said) // it ends with the process
	i.took = time.Since(start)
	if err := sched.Reap(cmd); err != nil {
		return i, fmt.Errorf("ovs-ofctl %s: %w: %s", strings.Join(args, " "), err, text)
	}
	after, err := w.otherThreadsTime()
	i.busy = after - busy + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return i, err
}

// removeInstalled removes entries by their cookie.
func (w *ovsContender) removeInstalled(ctx context.Context) error {
	return w.Ofctl(ctx, "del-flows", fmt.Sprintf("cookie=%#x/-1", installMark))
}

// otherThreadsTime is the processor time of the switch's threads, without the polling one.
func (w *ovsContender) otherThreadsTime() (sum time.Duration, err error) {
	ran, err := sched.ThreadTimes(w.PID())
	for thread, t := range ran {
		if thread != w.pollingThread {
			sum += t.Ran
		}
	}
	return sum, err
}
