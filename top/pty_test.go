//go:build linux

package top

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal of 100 by 30: what somebody types, and all that came
// to be shown.
type terminal struct {
	person, program *os.File
	mu              sync.Mutex
	shown           bytes.Buffer
	more            chan struct{}
}

// openTerminal opens one as ptmx(4) says.
func openTerminal(t *testing.T) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	no, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", no), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{person: person, program: program, more: make(chan struct{}, 1)}
	go term.runReads()
	return term
}

// runReads takes what is shown, until the terminal is closed.
func (t *terminal) runReads() {
	b := make([]byte, 4096)
	for {
		n, err := t.person.Read(b)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.shown.Write(escapes.ReplaceAll(b[:n], nil))
		t.mu.Unlock()
		select {
		case t.more <- struct{}{}:
		default:
		}
	}
}

// await waits until a text was shown, and forgets what was.
func (t *terminal) await(test *testing.T, text string) {
	test.Helper()
	for deadline := time.After(time.Minute); ; {
		t.mu.Lock()
		all := t.shown.String()
		found := bytes.Contains(t.shown.Bytes(), []byte(text))
		if found {
			t.shown.Reset()
		}
		t.mu.Unlock()
		if found {
			return
		}
		select {
		case <-t.more:
		case <-deadline:
			test.Fatalf("%q is not shown in %q", text, all)
		}
	}
}

func (t *terminal) press(test *testing.T, keys string) {
	test.Helper()
	if _, err := t.person.WriteString(keys); err != nil {
		test.Fatal(err)
	}
}

// TestTerminal runs the screen on a terminal, over the API of a switch with the ports,
// tables and rules of a Node: it shows them, follows keys, and ends.
func TestTerminal(t *testing.T) {
	from, err := answer.Offline(pipeline.Manifests{Path: "../examples/web-app", Node: "node-a"}, config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t)
	ended := make(chan error, 1)
	go func() {
		o := Options{From: from, Title: "node-a", Every: 20 * time.Millisecond, Now: time.Now}
		ended <- Run(context.Background(), o, tea.WithInput(term.program), tea.WithOutput(term.program), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
	}()
	for _, s := range []struct{ keys, shows string }{
		{"", "default/client-a"},
		{"3", "SpoofGuard"},
		{"4", "acnp/web-app-db"},
		{"/DropOther\r", "filter: DropOther"},
		{"\x1b[C", "COUNTER"}, // →
		{"?", "sort by the next column"},
	} {
		term.press(t, s.keys)
		term.await(t, s.shows)
	}
	term.press(t, "q")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("q does not end it")
	}
}
