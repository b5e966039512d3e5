package sched

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc/stat. The kernel guarantees it to programs.
const ticksPerSecond = 100

// times is what all processors together have done since the machine started, in ticks.
type times struct{ busy, idle, steal float64 }

// readTimes reads the first line of /proc/stat. It returns zeros if the file cannot be read.
func readTimes() (t times) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(f, 64)
		switch i {
		case 0: // "cpu"
		case 4, 5: // idle, iowait
			t.idle += n
		case 8:
			t.steal = n
		case 9, 10: // guests, which are in user already
		default:
			t.busy += n
		}
	}
	return t
}

// ForeignLoad returns the part of the processors, from 0 to 1, that other programs and the host use.
// It sleeps for half a second, so that this process uses none.
func ForeignLoad() float64 {
	before := readTimes()
	time.Sleep(restTime)
	after := readTimes()
	busy := after.busy + after.steal - before.busy - before.steal
	return busy / max(busy+after.idle-before.idle, 1)
}

// restTime is how long ForeignLoad sleeps.
const restTime = 500 * time.Millisecond
