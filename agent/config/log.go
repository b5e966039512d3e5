package config

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// NewLog makes the log of a checked configuration. It bounds repeated lines, and counts those
// that it leaves out.
func (l *Logging) NewLog(w io.Writer) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(l.Level)) // checked already
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if l.Format == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(newQuiet(h))
}

const (
	// One message may have repeatBurst lines within repeatWindow. After that it has one line in
	// each repeatWindow.
	repeatBurst  = 20
	repeatWindow = 10 * time.Second
	// messages is how many different messages are counted. The program has fewer.
	messages = 256
)

// quiet is a slog.Handler that bounds how often a message comes. A link that goes up and down
// all day must not fill the disk, nor hide other lines. Messages are the same if level and text
// are; attributes may differ.
type quiet struct {
	to    slog.Handler
	state *quietState // shared by all handlers that With made
}

// quietState counts each message in its window.
type quietState struct {
	mu     sync.Mutex
	counts map[repeatKey]*repeats
}

type repeatKey struct {
	level   slog.Level
	message string
}

// repeats is one message's window.
type repeats struct {
	began         time.Time
	written, left int
}

func newQuiet(to slog.Handler) *quiet {
	return &quiet{to, &quietState{counts: map[repeatKey]*repeats{}}}
}

// Enabled implements slog.Handler.
func (q *quiet) Enabled(ctx context.Context, l slog.Level) bool { return q.to.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (q *quiet) WithAttrs(a []slog.Attr) slog.Handler { return &quiet{q.to.WithAttrs(a), q.state} }

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler { return &quiet{q.to.WithGroup(name), q.state} }

// Handle implements slog.Handler. A line after others that were left out has their number, as
// "repeated".
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	write, left := q.state.count(repeatKey{r.Level, r.Message}, r.Time)
	if !write {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", left))
	}
	return q.to.Handle(ctx, r)
}

// count says whether to write a message, and how many were left out since the last written one.
func (s *quietState) count(k repeatKey, now time.Time) (write bool, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[k]
	if c == nil {
		s.forget(now)
		c = &repeats{began: now}
		s.counts[k] = c
	}
	if now.Sub(c.began) >= repeatWindow {
		left, c.began, c.left = c.left, now, 0
		c.written = 1
		if left > 0 {
			c.written = repeatBurst // the message repeats: one line in each window
		}
		return true, left
	}
	if c.written < repeatBurst {
		c.written++
		return true, 0
	}
	c.left++
	return false, 0
}

// forget removes windows that are over. If there are none, it removes all.
func (s *quietState) forget(now time.Time) {
	if len(s.counts) < messages {
		return
	}
	for k, c := range s.counts {
		if now.Sub(c.began) >= repeatWindow && c.left == 0 {
			delete(s.counts, k)
		}
	}
	if len(s.counts) >= messages {
		clear(s.counts)
	}
}

// Logging is the format and level of the agent's log. It goes to standard error.
type Logging struct {
	// Format is one of text (logfmt) and json.
	Format string `json:"format,omitempty"`
	// Level is one of debug, info, warn and error.
	Level string `json:"level,omitempty"`
}

func (l *Logging) setDefaults() {
	orDefault(&l.Format, "text")
	orDefault(&l.Level, "info")
}

func (l *Logging) check(f *faults) {
	f.check(l.Format == "text" || l.Format == "json", "log.format: %q is neither text nor json", l.Format)
	f.check(new(slog.Level).UnmarshalText([]byte(l.Level)) == nil, "log.level: %q is none of debug, info, warn and error", l.Level)
}

// AuditLog is the log of policies' decisions: lines of JSON in a file that is rotated when it
// is full.
type AuditLog struct {
	// Path is the file.
	Path string `json:"path,omitempty" default:"networkpolicy.log beside the socket"`
	// MaxSizeMB is the size of a full file.
	MaxSizeMB int `json:"maxSizeMB,omitempty" unit:"10^6 bytes"`
	// Keep is how many full files stay, as path.1, path.2 and so on.
	Keep *int `json:"keep,omitempty" unit:"files"`
	// LinesPerSecond bounds the lines.
	LinesPerSecond int `json:"linesPerSecond,omitempty" unit:"lines/s"`
}

func (a *AuditLog) setDefaults() {
	orDefault(&a.MaxSizeMB, 10)
	orDefault(&a.LinesPerSecond, 1000)
	orDefault(&a.Keep, new(3))
}

func (a *AuditLog) check(f *faults) {
	f.check(a.MaxSizeMB >= 1 && a.MaxSizeMB <= 1<<20, "auditLog.maxSizeMB: %d is not between 1 and %d", a.MaxSizeMB, 1<<20)
	f.check(*a.Keep >= 0 && *a.Keep <= 1000, "auditLog.keep: %d is not between 0 and 1000", *a.Keep)
	f.check(a.LinesPerSecond >= 1 && a.LinesPerSecond <= 1e6, "auditLog.linesPerSecond: %d is not between 1 and 1000000", a.LinesPerSecond)
}
