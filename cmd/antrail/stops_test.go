package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWithNoSignals(t *testing.T) {
	for setting, want := range map[string]string{
		"":                            "asyncpreemptoff=1",
		"gctrace=1":                   "gctrace=1,asyncpreemptoff=1",
		"asyncpreemptoff=0":           "",
		"gctrace=1,asyncpreemptoff=1": "",
	} {
		got, more := withNoSignals(setting)
		if more != (want != "") || more && got != want {
			t.Errorf("%q becomes %q (%v), want %q", setting, got, more, want)
		}
	}
}

// TestBeginsWithoutSignals: an agent begins anew with the setting, once, and with the
// arguments and the name that it had; a setting of its user's is left, and so are other
// commands.
func TestBeginsWithoutSignals(t *testing.T) {
	if command := os.Getenv(lifeEnv); command != "" {
		beginWithoutSignals([]string{command})
		comm, _ := os.ReadFile("/proc/self/comm")
		os.Stdout.WriteString(strings.Join(os.Args[1:], " ") + " " + os.Getenv("GODEBUG") + "\n" + string(comm))
		return
	}
	for _, c := range []struct{ command, set, want string }{
		{"agent", "", "asyncpreemptoff=1"},
		{"agent", "madvdontneed=1", "madvdontneed=1,asyncpreemptoff=1"},
		{"agent", "asyncpreemptoff=0", "asyncpreemptoff=0"},
		{"bench", "madvdontneed=1", "madvdontneed=1"},
	} {
		run := exec.Command(os.Args[0], "-test.run=^TestBeginsWithoutSignals$")
		run.Env = append(os.Environ(), lifeEnv+"="+c.command, "GODEBUG="+c.set)
		out, err := run.CombinedOutput()
		name := filepath.Base(os.Args[0])
		if want := "-test.run=^TestBeginsWithoutSignals$ " + c.want + "\n" + name[:min(15, len(name))] + "\n"; err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s with GODEBUG=%s: %v\n%s", c.command, c.set, err, out)
		}
	}
}
