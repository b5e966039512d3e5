package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// TestLostLines: a kind of loss has a line when it begins and one a minute after,
// however many packets are lost, and other kinds have their own.
func TestLostLines(t *testing.T) {
	var log bytes.Buffer
	teller := lostTeller{log: slog.New(slog.NewTextHandler(&log, nil)), told: map[lostKind]*lostTold{}}
	now := time.Now()
	lose := func(port uint32, after time.Duration) {
		p := &api.LostPacket{Reason: "entry", Table: "SpoofGuard"}
		p.Port.No = port
		teller.tell(p, now.Add(after))
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
	for i := range uint32(3 * lostKinds) {
		lose(i, time.Minute)
	}
	if len(teller.told) > lostKinds {
		t.Errorf("%d kinds are known at once", len(teller.told))
	}
}
