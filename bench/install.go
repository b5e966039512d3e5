package bench

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

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"golang.org/x/sys/unix"
)

// What it takes to install entries: those of policy rules, from their text to
// the moment when packets meet them.

const (
	bundleSize  = 10_000
	singleSize  = 1000   // entries installed one by one beside those of the bundle
	installMark = 0xbe9c // cookie of both
)

const installNote = "Entries are those of policy rules, from text to installed: 10,000 in one bundle, then 1,000 more, each a change of its own. " +
	"antrail: parsed and applied in the same process. Open vSwitch: ovs-ofctl add-flows, with --bundle and without. " +
	"Processor time is that of all threads: of ovs-ofctl and of the switch but for its polling thread."

// installation is the entries to install, one to a line as dumps have them.
type installation struct{ bundle, single []string }

func newInstallation(names *flow.Names) (*installation, error) {
	var lines []string
	for first := 0; len(lines) < bundleSize+singleSize; first += rulesOfPriority {
		entries, err := ruleEntries(names, first, rulesOfPriority)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			e.Cookie = installMark
			lines = append(lines, strings.TrimSpace(e.Text(flow.Format{})))
		}
	}
	return &installation{lines[:bundleSize], lines[bundleSize : bundleSize+singleSize]}, nil
}

// installed is how long it took to install entries, by the clock, and the time
// that processors took.
type installed struct{ took, busy time.Duration }

// measure installs the entries and removes them again.
func (n *installation) measure(ctx context.Context, w contender) ([]reading, error) {
	bundle, err := w.add(ctx, n.bundle, true)
	if err != nil {
		return nil, fmt.Errorf("a bundle of %d entries: %w", len(n.bundle), err)
	}
	single, err := w.add(ctx, n.single, false)
	if err := errors.Join(err, w.remove(ctx)); err != nil {
		return nil, fmt.Errorf("%d entries one by one: %w", len(n.single), err)
	}
	return append(bundle.readings("entries installed in one bundle", len(n.bundle)),
		single.readings("entries installed one by one", len(n.single))...), nil
}

func (i installed) readings(name string, n int) []reading {
	return []reading{
		{name, "1/s", float64(n) / i.took.Seconds()},
		{name + ", processor time of each", "µs", float64(i.busy.Nanoseconds()) / 1e3 / float64(n)},
	}
}

func (w *walk) add(_ context.Context, lines []string, bundle bool) (i installed, err error) {
	busy, start := ownTime(), time.Now()
	batch := 1
	if bundle {
		batch = len(lines)
	}
	for part := range slices.Chunk(lines, batch) {
		b := new(dataplane.Bundle)
		for _, line := range part {
			e, err := flow.ParseEntry(line, w.program.sw.Names())
			if err != nil {
				return i, err
			}
			b.Add = append(b.Add, e)
		}
		if err := w.program.sw.Apply(b); err != nil {
			return i, err
		}
	}
	return installed{time.Since(start), ownTime() - busy}, nil
}

func (w *walk) remove(context.Context) error {
	b := new(dataplane.Bundle)
	for _, f := range w.program.sw.Flows() {
		if f.Cookie == installMark {
			b.Delete = append(b.Delete, f.Entry)
		}
	}
	return w.program.sw.Apply(b)
}

// ownTime is what all threads of this process have had of the processors, those
// that ended too.
func ownTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // there is no way for it to fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (w *ovsWalk) add(ctx context.Context, lines []string, bundle bool) (i installed, err error) {
	file := w.path("install")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return i, err
	}
	args := []string{"-OOpenFlow15", "add-flows", w.path("br0.mgmt"), file}
	if bundle {
		args = append(args, "--bundle")
	}
	busy, err := w.switchTime()
	if err != nil {
		return i, err
	}
	cmd := exec.CommandContext(ctx, "ovs-ofctl", args...)
	cmd.Env = w.environment()
	said, err := cmd.StderrPipe()
	start := time.Now()
	if err = errors.Join(err, cmd.Start()); err != nil {
		return i, err
	}
	text, _ := io.ReadAll(said) // the end of it is that of the process
	i.took = time.Since(start)
	if err := reap(cmd); err != nil {
		return i, fmt.Errorf("ovs-ofctl %s: %w: %s", strings.Join(args, " "), err, text)
	}
	after, err := w.switchTime()
	i.busy = after - busy + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return i, err
}

func (w *ovsWalk) remove(ctx context.Context) error {
	return w.ofctl(ctx, "del-flows", fmt.Sprintf("cookie=%#x/-1", installMark))
}

// switchTime is what the switch's threads have run, but for the polling one.
func (w *ovsWalk) switchTime() (sum time.Duration, err error) {
	ran, err := threadTimes(w.pid())
	for thread, t := range ran {
		if thread != w.thread {
			sum += t.ran
		}
	}
	return sum, err
}
