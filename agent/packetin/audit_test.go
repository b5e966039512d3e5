package packetin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tables"
)

// packetInOf is a packet-in of a frame, and a verdict on it.
func packetInOf(srcPort uint16) (*telemetry.PacketIn, tables.Verdict) {
	frame := packettest.TCP6(packettest.Options{SrcPort: srcPort})
	return &telemetry.PacketIn{InPort: 7, Frame: frame}, tables.Verdict{Log: true, Table: "EgressRule", Direction: tables.Egress, Action: tables.Allow, Rule: 9}
}

// TestAuditLimit: beyond the limit, new lines are dropped and counted; packets of a
// line that is there are not. The next second has the whole limit again.
func TestAuditLimit(t *testing.T) {
	var b bytes.Buffer
	log := &bytes.Buffer{}
	a := NewAudit(&b, nil, 2, slog.New(slog.NewTextHandler(log, nil)))
	for _, port := range []uint16{1, 2, 3, 1, 4, 2} {
		a.notePacketIn(packetInOf(port))
	}
	a.Flush()
	if n := strings.Count(b.String(), "\n"); n != 2 || strings.Count(b.String(), `"packets":2`) != 2 {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
	if p, l, dropped := a.Packets.Load(), a.Lines.Load(), a.Dropped.Load(); p != 6 || l != 2 || dropped != 2 {
		t.Errorf("%d packets, %d lines, %d dropped; want 6, 2 and 2", p, l, dropped)
	}
	if !strings.Contains(log.String(), "at its limit") {
		t.Errorf("logged %s", log)
	}
	b.Reset()
	a.notePacketIn(packetInOf(3))
	a.Flush()
	if !strings.Contains(b.String(), `"source":"fd00::1","sourcePort":3,`) || !strings.Contains(b.String(), `"policy":"","direction":"Egress"`) {
		t.Errorf("next second:\n%s", b.String())
	}
	a.notePacketIn(&telemetry.PacketIn{Frame: []byte{1, 2, 3}}, tables.Verdict{})
	a.notePacketIn(&telemetry.PacketIn{Frame: packettest.ARPRequest(packettest.Options{})}, tables.Verdict{})
	if len(a.order) > 0 {
		t.Errorf("what is no IP packet has a line: %+v", a.order[0])
	}
}

// TestAuditAtTheEnd: what waits when the agent stops is written.
func TestAuditAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := &AuditFile{Path: path, Max: 1000, Keep: 1}
	a := NewAudit(f, nil, 10, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a.notePacketIn(packetInOf(1))
	a.RunAudit(ctx)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("%q, %v", b, err)
	}
}

// TestAuditCannotBeWritten: it is said, and tried again.
func TestAuditCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	log := &bytes.Buffer{}
	f := &AuditFile{Path: filepath.Join(dir, "log"), Max: 1000}
	a := NewAudit(f, nil, 10, slog.New(slog.NewTextHandler(log, nil)))
	a.notePacketIn(packetInOf(1))
	a.Flush()
	if !strings.Contains(log.String(), "cannot write the audit log") {
		t.Errorf("logged %s", log)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.notePacketIn(packetInOf(2))
	a.Flush()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(f.Path); err != nil || !strings.Contains(string(b), `"sourcePort":2`) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestAuditFile puts full files aside, and goes on where an earlier agent
// stopped.
func TestAuditFile(t *testing.T) {
	for _, s := range []struct {
		keep int
		want []string // the file, then those put aside
	}{
		{0, []string{"seven..\n"}},
		{1, []string{"seven..\n", "five...\nsix....\n"}},
		{2, []string{"seven..\n", "five...\nsix....\n", "three..\nfour...\n"}},
		{9, []string{"seven..\n", "five...\nsix....\n", "three..\nfour...\n", "one....\ntwo....\n"}},
	} {
		t.Run(fmt.Sprint(s.keep), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			for _, line := range []string{"one....\n", "two....\n", "three..\n", "four...\n", "five...\n", "six....\n", "seven..\n"} {
				f := &AuditFile{Path: path, Max: 16, Keep: s.keep}
				if _, err := f.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for i, want := range s.want {
				name := path
				if i > 0 {
					name = fmt.Sprintf("%s.%d", path, i)
				}
				if b, err := os.ReadFile(name); err != nil || string(b) != want {
					t.Errorf("%s: %q, %v; want %q", name, b, err, want)
				}
			}
			if _, err := os.Stat(fmt.Sprintf("%s.%d", path, len(s.want))); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("more files than are to be kept: %v", err)
			}
		})
	}
}
