package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// TestDropLines: a kind of loss has a line when it begins and one a minute after,
// however many packets are dropped, and other kinds have their own.
func TestDropLines(t *testing.T) {
	var log bytes.Buffer
	teller := dropLogger{log: slog.New(slog.NewTextHandler(&log, nil)), told: map[dropKind]*dropsLogged{}}
	now := time.Now()
	lose := func(port uint32, after time.Duration) {
		p := &api.DroppedPacket{Reason: "entry", Table: "SpoofGuard"}
		p.Port.No = port
		teller.logDrop(p, now.Add(after))
	}
	for i := range 100 {
		lose(1, time.Duration(i)*time.Millisecond)
	}
	lose(2, time.Second)
	lose(1, time.Minute)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "more=99") || !strings.Contains(lines[0], "table=SpoofGuard") {
		t.Errorf("%d lines:\n%s", len(lines), log.String())
	}
	for i := range uint32(3 * dropKinds) {
		lose(i, time.Minute)
	}
	if len(teller.told) > dropKinds {
		t.Errorf("%d kinds are known at once", len(teller.told))
	}
}
