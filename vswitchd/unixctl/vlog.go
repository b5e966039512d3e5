package unixctl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
)

// Destination is where log records go.
type Destination int

// The destinations of Open vSwitch's daemons.
const (
	Console Destination = iota
	Syslog
	File
)

// destinations are the names of destinations, in their order.
var destinations = []string{"console", "syslog", "file"}

// off is a level above all records.
const off = slog.Level(math.MaxInt32)

// vlogLevels are the levels of vlog, with those of slog.
var vlogLevels = []struct {
	name  string
	level slog.Level
}{{"OFF", off}, {"EMER", slog.LevelError + 4}, {"ERR", slog.LevelError}, {"WARN", slog.LevelWarn}, {"INFO", slog.LevelInfo}, {"DBG", slog.LevelDebug}}

// Vlog has the log levels of modules, by destination. Several goroutines may use it.
type Vlog struct {
	modules []string // sorted
	reopen  func() error

	mu     sync.RWMutex
	levels map[string]*[3]slog.Level
}

// NewVlog makes the levels of modules: INFO for all destinations. reopen opens the log file again;
// nil if there is none.
func NewVlog(reopen func() error, modules ...string) *Vlog {
	v := &Vlog{modules: slices.Sorted(slices.Values(modules)), reopen: reopen, levels: map[string]*[3]slog.Level{}}
	for _, m := range modules {
		v.levels[m] = &[3]slog.Level{slog.LevelInfo, slog.LevelInfo, slog.LevelInfo}
	}
	return v
}

// Commands are vlog/list, vlog/set and vlog/reopen.
func (v *Vlog) Commands() []Command {
	return []Command{
		{Name: "vlog/list", Run: v.listLevels},
		{Name: "vlog/set", Usage: "{spec | PATTERN:destination:pattern}", Max: math.MaxInt, Run: v.setAll},
		{Name: "vlog/reopen", Run: v.reopenFile},
		{Name: "vlog/close", Run: Refuse("records go to standard error, which is not closed")},
		{Name: "vlog/list-pattern", Run: Refuse(errPattern)},
		{Name: "vlog/enable-rate-limit", Usage: "[module]...", Max: math.MaxInt, Run: Refuse(errNoRateLimit)},
		{Name: "vlog/disable-rate-limit", Usage: "[module]...", Max: math.MaxInt, Run: Refuse(errNoRateLimit)},
	}
}

// Reasons of refused commands.
const (
	errPattern     = "patterns are not supported: all records have one form"
	errNoRateLimit = "rate limits are not supported: vlog/set chooses records by level"
)

// Handler is a handler that passes the records of a module for a destination on to next.
func (v *Vlog) Handler(module string, to Destination, next slog.Handler) slog.Handler {
	return &vlogHandler{next, v, module, to}
}

// vlogHandler is the slog.Handler of Vlog.Handler.
type vlogHandler struct {
	slog.Handler
	v      *Vlog
	module string
	to     Destination
}

// Enabled implements slog.Handler.
func (h *vlogHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.v.level(h.module, h.to)
}

// WithAttrs implements slog.Handler.
func (h *vlogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &vlogHandler{h.Handler.WithAttrs(attrs), h.v, h.module, h.to}
}

// WithGroup implements slog.Handler.
func (h *vlogHandler) WithGroup(name string) slog.Handler {
	return &vlogHandler{h.Handler.WithGroup(name), h.v, h.module, h.to}
}

// level is a module's level for a destination; off for an unknown module.
func (v *Vlog) level(module string, to Destination) slog.Level {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if l := v.levels[module]; l != nil {
		return l[to]
	}
	return off
}

func (v *Vlog) listLevels(context.Context, []string) (string, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var b strings.Builder
	b.WriteString("                 console    syslog    file\n                 -------    ------    ------\n")
	for _, m := range v.modules {
		l := v.levels[m]
		fmt.Fprintf(&b, "%-16s  %4s       %4s       %4s\n", m, levelName(l[Console]), levelName(l[Syslog]), levelName(l[File]))
	}
	return b.String(), nil
}

func levelName(l slog.Level) string {
	for _, v := range vlogLevels {
		if v.level == l {
			return v.name
		}
	}
	return l.String()
}

// setAll applies specifications (ovs-appctl(8)). Without one, it sets all levels to DBG.
func (v *Vlog) setAll(_ context.Context, args []string) (string, error) {
	if len(args) == 0 {
		args = []string{"dbg"}
	}
	for _, spec := range args {
		if err := v.Set(spec); err != nil {
			return "", err
		}
	}
	return "", nil
}

// selection is a parsed specification.
type selection struct {
	module, level string // "" for any module, and for DBG
	to            int    // -1 for all destinations
}

// Set changes levels. A specification has a module, a destination and a level in any order, and may
// leave out any of them.
func (v *Vlog) Set(spec string) error {
	if strings.HasPrefix(strings.ToUpper(spec), "PATTERN:") {
		return errors.New("patterns are not supported: all records have one form")
	}
	s := selection{to: -1}
	for _, word := range strings.FieldsFunc(spec, func(r rune) bool { return strings.ContainsRune(" :,", r) }) {
		if err := v.readWord(&s, word); err != nil {
			return err
		}
	}
	v.apply(s)
	return nil
}

// readWord reads one word of a specification into s.
func (v *Vlog) readWord(s *selection, word string) error {
	low, up := strings.ToLower(word), strings.ToUpper(word)
	isLevel := slices.ContainsFunc(vlogLevels, func(l struct {
		name  string
		level slog.Level
	}) bool {
		return l.name == up
	})
	switch to := slices.Index(destinations, low); {
	case up == "ANY":
	case to >= 0 && s.to < 0:
		s.to = to
	case to >= 0:
		return errors.New("cannot specify multiple destinations")
	case isLevel && s.level == "":
		s.level = up
	case isLevel:
		return errors.New("cannot specify multiple levels")
	case v.levels[low] == nil:
		return fmt.Errorf("no destination, level, or module \"%s\"", word)
	case s.module != "":
		return errors.New("cannot specify multiple modules")
	default:
		s.module = low
	}
	return nil
}

func (v *Vlog) apply(s selection) {
	level := slog.LevelDebug
	for _, l := range vlogLevels {
		if l.name == s.level {
			level = l.level
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, l := range v.levels {
		for to := range l {
			if (s.module == "" || s.module == name) && (s.to < 0 || s.to == to) {
				l[to] = level
			}
		}
	}
}

func (v *Vlog) reopenFile(context.Context, []string) (string, error) {
	if v.reopen == nil {
		return "", errors.New("Logging to file not configured") //lint:ignore ST1005 as Open vSwitch words it
	}
	return "", v.reopen()
}
