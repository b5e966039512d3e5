package sched

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRunAsOrdinary checks that all threads, and a program that they start, are ordinary meanwhile and
// have their class again afterwards.
func TestRunAsOrdinary(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a real-time class needs root")
	}
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, class := range map[string]*unix.SchedAttr{
		"real-time": {Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1},
		"ordinary":  {Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL},
	} {
		t.Run(name, func(t *testing.T) {
			if err := everyThread(class); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := everyThread(before); err != nil {
					t.Error(err)
				}
			}()
			err := RunAsOrdinary(func() error {
				wantClass(t, unix.SCHED_NORMAL)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			wantClass(t, class.Policy)
		})
	}
}

// wantClass checks the class of all threads, and of a program that one of them starts.
func wantClass(t *testing.T, want uint32) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		no, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if has, err := unix.SchedGetAttr(no, 0); err == nil && has.Policy != want { // a thread may have ended
			t.Errorf("thread %d is of class %d, want %d", no, has.Policy, want)
		}
	}
	out, err := exec.Command("cut", "-d", " ", "-f", "41", "/proc/self/stat").Output() // proc_pid_stat(5): policy
	if got := strings.TrimSpace(string(out)); err != nil || got != strconv.Itoa(int(want)) {
		t.Errorf("a program that it starts is of class %s, want %d (%v)", got, want, err)
	}
}
