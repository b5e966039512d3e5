package nsthread_test

import (
	"errors"
	"os"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/internal/nsthread"
	"github.com/vishvananda/netns"
)

// TestIn is there, comes home, and hands on what went wrong.
func TestIn(t *testing.T) {
	there := nstest.New(t)
	where := func() string {
		name, err := os.Readlink("/proc/thread-self/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	var want, got string
	there.Do(t, func() { want = where() })
	home, failure := where(), errors.New("failed there")
	err := nsthread.In(netns.NsHandle(there.FD()), func() error { got = where(); return failure })
	if got != want || got == home || !errors.Is(err, failure) || where() != home {
		t.Errorf("was in %s, want %s; %v; home is %s, was %s", got, want, err, where(), home)
	}
	if err := nsthread.In(netns.None(), func() error { return failure }); err == nil || errors.Is(err, failure) {
		t.Errorf("no namespace: %v", err)
	}
}
