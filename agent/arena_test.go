package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/switchd"
)

// track sends one UDP packet through ct(commit).
func track(t *testing.T, p *pipeline) {
	t.Helper()
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53}))
	l := packet.ParseLayers(f.Bytes())
	var m conntrack.Meta
	if v := p.local.Table().Track(f, &l, &m, &conntrack.Request{Zone: 7, Commit: true}, p.clock()); v.Drop != conntrack.DropNone {
		t.Fatalf("dropped: %v", v.Drop)
	}
}

func tableIn(t *testing.T, path string, ctMax int) *pipeline {
	t.Helper()
	clock, err := switchd.BootClock()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPipeline(options{clock: clock, ctFile: path, ct: Conntrack{Max: ctMax}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closePipeline(t testing.TB, p *pipeline) {
	t.Helper()
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// TestConnectionsOutliveTheAgent: the next agent has them; one that is told
// another size begins without and says why.
func TestConnectionsOutliveTheAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "ct.arena")
	p := tableIn(t, path, 2000)
	track(t, p)
	if _, err := newPipeline(options{clock: p.clock, ctFile: path, ct: Conntrack{Max: 2000}}); err == nil || !strings.Contains(err.Error(), "another agent uses it") {
		t.Errorf("a second agent on one file: %v", err)
	}
	closePipeline(t, p)
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 || st.Size() != int64(conntrack.ArenaSize(2000)) {
		t.Errorf("%v, %v", st.Mode(), err)
	}

	p = tableIn(t, path, 2000)
	if r := p.ct.Stats().Restored; r.Entries != 1 || r.Empty != "" {
		t.Errorf("restored %+v", r)
	}
	var log bytes.Buffer
	logRestored(slog.New(slog.NewTextHandler(&log, nil)), path, p.ct.Stats().Restored)
	if !strings.Contains(log.String(), `msg="1 connections restored, 0 torn, in `) {
		t.Errorf("logged %s", log.String())
	}
	if newShield(p) != (shield{}) {
		t.Error("endpoints are shielded, and no connection was lost")
	}
	closePipeline(t, p)

	p = tableIn(t, path, 3000)
	defer closePipeline(t, p)
	log.Reset()
	logRestored(slog.New(slog.NewTextHandler(&log, nil)), path, p.ct.Stats().Restored)
	if !strings.Contains(log.String(), `no connections restored`) || !strings.Contains(log.String(), "it was made for 2000 connections, not 3000") {
		t.Errorf("logged %s", log.String())
	}
	track(t, p)
}

func TestArenaFile(t *testing.T) {
	for socket, want := range map[string]string{
		DefaultSocket:      "/run/antrail/ct.arena",
		"/tmp/lab/a.sock":  "/tmp/lab/a.ct.arena",
		"/tmp/lab/b.other": "/tmp/lab/b.other.ct.arena",
	} {
		if got := (&Config{Socket: socket}).arenaFile(); got != want {
			t.Errorf("%s: %s, want %s", socket, got, want)
		}
	}
}
