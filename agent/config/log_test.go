package config

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestQuiet: a message that repeats itself is bounded and its number told; others
// are not held up, nor the same words of another level.
func TestQuiet(t *testing.T) {
	var b bytes.Buffer
	h := newQuiet(slog.NewTextHandler(&b, nil))
	now := time.Unix(1e9, 0)
	say := func(level slog.Level, message string) {
		r := slog.NewRecord(now, level, message, 0)
		if err := h.WithAttrs([]slog.Attr{slog.String("port", "web-a")}).Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	lines := func() (n int, repeated string) {
		n = strings.Count(b.String(), "\n")
		if _, after, ok := strings.Cut(b.String(), "repeated="); ok {
			repeated = strings.TrimSpace(after)
		}
		b.Reset()
		return n, repeated
	}
	expect := func(what string, n int, repeated string) {
		t.Helper()
		if gotN, got := lines(); gotN != n || got != repeated {
			t.Errorf("%s: %d lines, repeated %q; want %d, %q", what, gotN, got, n, repeated)
		}
	}
	for range 1000 {
		say(slog.LevelInfo, "port added")
	}
	expect("a burst", repeatBurst, "")
	say(slog.LevelInfo, "port removed")
	say(slog.LevelWarn, "port added")
	expect("others", 2, "")
	now = now.Add(repeatWindow)
	say(slog.LevelInfo, "port added")
	expect("the next window", 1, fmt.Sprint(1000-repeatBurst))
	for range 10 {
		say(slog.LevelInfo, "port added")
	}
	expect("as it goes on", 0, "")
	now = now.Add(repeatWindow)
	say(slog.LevelInfo, "port added")
	expect("again", 1, "10")
	now = now.Add(repeatWindow)
	for range 3 {
		say(slog.LevelInfo, "port added")
	}
	expect("when it is over", 3, "")
	for i := range 3 * messages {
		say(slog.LevelInfo, fmt.Sprint("message ", i))
	}
	expect("different messages", 3*messages, "")
	if n := len(h.state.counts); n > messages {
		t.Errorf("%d messages are counted, more than %d", n, messages)
	}
}

// TestLogFormats: a line has its attributes, as logfmt or JSON, from its level on.
func TestLogFormats(t *testing.T) {
	var b bytes.Buffer
	log := (&Logging{Format: "json", Level: "warn"}).NewLog(&b)
	log.Info("not this")
	log.Warn("port removed", "port", "web-a", "ofPort", 37)
	var line struct {
		Level, Msg, Port string
		OFPort           int `json:"ofPort"`
	}
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	if line.Level != "WARN" || line.Msg != "port removed" || line.Port != "web-a" || line.OFPort != 37 {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	(&Logging{Format: "text", Level: "debug"}).NewLog(&b).Debug("that", "port", "web-a")
	if !strings.Contains(b.String(), "level=DEBUG msg=that port=web-a\n") {
		t.Errorf("%s", b.String())
	}
}
