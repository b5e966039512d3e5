package demo

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestIdleAgentSleeps counts how often a switch's workers wake up when nothing
// comes: once a second, and for the odd ARP. Its goroutines are stopped without signals.
func TestIdleAgentSleeps(t *testing.T) {
	l := plainLab(t)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", switchPID(t, l.Lab, l.State.Agents[0].Node)))
	if err != nil || !bytes.Contains(environ, []byte("asyncpreemptoff=1")) {
		t.Errorf("the switch's environment: %v\n%q", err, environ)
	}
	w := l.bare()
	if _, err := w.ping("client-a", "client-b", waitAtMost); err != nil {
		t.Fatal(err)
	}
	const watch = 3 * time.Second
	sleeps, ticks := idleCounters(t, w)
	time.Sleep(watch)
	sleepsAfter, ticksAfter := idleCounters(t, w)
	const perSecond = 100 // USER_HZ
	t.Logf("in %v: %d sleeps, %.1f %% of a core", watch, sleepsAfter-sleeps,
		100*float64(ticksAfter-ticks)/perSecond/watch.Seconds())
	if n := sleepsAfter - sleeps; n < 1 || n > 100 {
		t.Errorf("%d sleeps in %v, want a few", n, watch)
	}
}

// idleCounters reads how often the workers of node-a slept, and the processor
// time of its agent in clock ticks.
func idleCounters(t *testing.T, w *world) (sleeps, ticks int) {
	t.Helper()
	b, err := w.agent("node-a").Get(t.Context(), "/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "antrail_worker_sleeps_total "); ok {
			sleeps, err = strconv.Atoi(strings.TrimSpace(n))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.lab.State.Agents[0].Process.PID))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	for _, f := range fields[14-3 : 16-3] { // utime, stime
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return sleeps, ticks
}
