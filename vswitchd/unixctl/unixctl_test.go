package unixctl

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/antrail/antrail/internal/unixctl"
)

// start runs a server on a socket until the test ends.
func start(t testing.TB, s *Server) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "ctl")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

var silent = slog.New(slog.DiscardHandler)

// call gives a command to a server.
func call(t testing.TB, socket, command string, args ...string) (string, error) {
	return client.Call(t.Context(), socket, 30*time.Second, command, args...)
}

// TestCommands: commands get their arguments, and answers and errors come back as lines.
func TestCommands(t *testing.T) {
	s := New(silent, "daemon (antrail) 1.2.3")
	stopped := make(chan bool, 1)
	s.Register(
		Command{Name: "join", Usage: "a [b]", Min: 1, Max: 2, Run: func(_ context.Context, args []string) (string, error) { return strings.Join(args, "+"), nil }},
		Command{Name: "fail", Run: func(context.Context, []string) (string, error) { return "", errors.New("it failed") }},
		MemoryShow(func() map[string]int { return map[string]int{"b": 2, "a": 1} }),
		Exit(true, func(cleanup bool) { stopped <- cleanup }),
	)
	socket := start(t, s)
	for _, c := range []struct{ words, want string }{
		{"version", "daemon (antrail) 1.2.3\n"},
		{"join x y", "x+y\n"},
		{"join", "error \"join\" command requires at least 1 arguments\n"},
		{"join x y z", "error \"join\" command takes at most 2 arguments\n"},
		{"fail", "error it failed\n"},
		{"none", "error \"none\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n"},
		{"memory/show", "a:1 b:2\n"},
		{"list-commands", "The available commands are:\n  exit                    [--cleanup]\n  fail                    \n  join                    a [b]\n  list-commands           \n  memory/show             \n  version                 \n"},
		{"exit --cleanup", ""},
	} {
		words := strings.Fields(c.words)
		got, err := call(t, socket, words[0], words[1:]...)
		if err != nil {
			got = "error " + strings.TrimPrefix(strings.TrimPrefix(err.Error(), words[0]+" "+strings.Join(words[1:], " ")), ": ")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.words, got, c.want)
		}
	}
	if !<-stopped {
		t.Error("exit --cleanup does not clean up")
	}
}

// TestVlog: levels decide which records pass.
func TestVlog(t *testing.T) {
	reopened := 0
	v := NewVlog(func() error { reopened++; return nil }, "bridge", "ofproto")
	s := New(silent, "")
	s.Register(v.Commands()...)
	socket := start(t, s)
	var file, console bytes.Buffer
	plain := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	toFile := slog.New(v.Handler("bridge", File, slog.NewTextHandler(&file, plain))).With("x", 1).WithGroup("g")
	toConsole := slog.New(v.Handler("bridge", Console, slog.NewTextHandler(&console, plain)))
	say := func() {
		toFile.Debug("quiet")
		toFile.Info("loud")
		toConsole.Info("loud")
	}
	if _, err := call(t, socket, "vlog/set", "console:off"); err != nil {
		t.Error(err)
	}
	say()
	for _, spec := range []string{"file:dbg", "bridge:console:info", "ofproto:any:off"} {
		if _, err := call(t, socket, "vlog/set", spec); err != nil {
			t.Error(err)
		}
	}
	say()
	if got, want := file.String(), "level=INFO msg=loud x=1\nlevel=DEBUG msg=quiet x=1\nlevel=INFO msg=loud x=1\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := console.String(), "level=INFO msg=loud\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got, err := call(t, socket, "vlog/list")
	if want := "                 console    syslog    file\n                 -------    ------    ------\nbridge            INFO       INFO        DBG\nofproto            OFF        OFF        OFF\n"; got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := call(t, socket, "vlog/set", "PATTERN:file:%m"); err == nil {
		t.Error("a pattern is taken")
	}
	if _, err := call(t, socket, "vlog/reopen"); err != nil || reopened != 1 {
		t.Errorf("%d, %v", reopened, err)
	}
}

// TestCoverage: no event is counted, and each counter that is asked for is missing.
func TestCoverage(t *testing.T) {
	s := New(silent, "")
	s.Register(Coverage()...)
	socket := start(t, s)
	const want = "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=811c9dc5:\n0 events never hit\n"
	if got, err := call(t, socket, "coverage/show"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := call(t, socket, "coverage/read-counter", "none"); err == nil || !strings.Contains(err.Error(), "No such counter") {
		t.Error(err)
	}
}

// FuzzServer: whatever a client sends, the next one is served.
func FuzzServer(f *testing.F) {
	for _, s := range []string{`{"id":0,"method":"version","params":[]}`, `{"id":0,"method":"version","params":[1]}`, `{"id":null,"method":"x","params":[]}`, `[`} {
		f.Add([]byte(s))
	}
	socket := start(f, New(silent, "1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(b)
		_ = c.Close()
		if got, err := call(t, socket, "version"); got != "1\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestSpecifications: what vlog/set takes and refuses.
func TestSpecifications(t *testing.T) {
	for spec, want := range map[string]string{
		"": "", "dbg": "", "ANY:ANY:DBG": "", "bridge": "", "bridge file warn": "", "file": "", "off:bridge:syslog": "", "bridge,err": "",
		"none": "no destination", "file:file": "multiple destinations", "dbg:info": "multiple levels", "bridge:ofproto": "multiple modules",
	} {
		err := NewVlog(nil, "bridge", "ofproto").Set(spec)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}
