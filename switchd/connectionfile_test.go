package switchd

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
	"github.com/antrail/antrail/switchd/local"
)

// withTable is a switch whose connections are in a file.
func withTable(path string, most int) (*local.Switch, error) {
	clock, err := BootClock()
	if err != nil {
		return nil, err
	}
	return local.Open(local.Config{Place: &ConnectionFile{Path: path}, Clock: clock, Conntrack: conntrack.Config{Max: most}})
}

func openTable(t *testing.T, path string, most int) *local.Switch {
	t.Helper()
	s, err := withTable(path, most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeTable(t *testing.T, s *local.Switch) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestConnectionsOutliveTheSwitch: the next switch has them. One with another table size begins
// without them, and logs the reason.
func TestConnectionsOutliveTheSwitch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "ct.arena")
	s := openTable(t, path, 2000)
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53}))
	l := packet.ParseLayers(f.Bytes())
	var m conntrack.Meta
	if v := s.Table().Track(f, &l, &m, &conntrack.Request{Zone: 7, Commit: true}, s.Clock()); v.Drop != conntrack.DropNone {
		t.Fatalf("dropped: %v", v.Drop)
	}
	if _, err := withTable(path, 2000); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("a second switch on one file: %v", err)
	}
	closeTable(t, s)
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 || st.Size() != int64(conntrack.ArenaSize(2000)) {
		t.Errorf("%v, %v", st.Mode(), err)
	}

	s = openTable(t, path, 2000)
	if r := s.Connections().Stats().Restored; r.Entries != 1 || r.Empty != "" {
		t.Errorf("restored %+v", r)
	}
	var log bytes.Buffer
	logRestored(slog.New(slog.NewTextHandler(&log, nil)), s)
	if !strings.Contains(log.String(), `msg="1 connections restored, 0 torn, in `) {
		t.Errorf("logged %s", log.String())
	}
	closeTable(t, s)

	s = openTable(t, path, 3000)
	defer closeTable(t, s)
	log.Reset()
	logRestored(slog.New(slog.NewTextHandler(&log, nil)), s)
	if !strings.Contains(log.String(), `no connections restored`) || !strings.Contains(log.String(), "it was made for 2000 connections, not 3000") {
		t.Errorf("logged %s", log.String())
	}
}
