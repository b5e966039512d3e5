package vswitchd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// TestKilledSwitchLosesNoChange: a switch begins again with an older file, or with none, as
// after a kill. It has the entries that controllers sent last: added, changed and removed ones,
// and the table where packets enter. It forgets the entries of its file.
func TestKilledSwitchLosesNoChange(t *testing.T) {
	sw := switchd.Process{Socket: filepath.Join(t.TempDir(), "switch.sock"), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	sw.Settings.Workers = 1
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		p := sw
		go func() { over <- p.Run(ctx) }()
		return func() {
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
	}
	stop := start()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	client := door.Dial(sw.Socket)
	c := controller{Process: &Process{Switch: sw.Socket}, client: client, log: log, begun: make(chan struct{}, 1)}
	b := &bridges{client: client, changes: &changeRecorder{Client: client}, runDir: t.TempDir(), log: log, ctx: ctx, ports: map[string]bridge.Port{}, receivers: receivers{client: client, log: log}}
	c.bridges = b
	over := make(chan struct{})
	go c.runControl(ctx, cancel, over)
	defer func() { cancel(nil); <-over; b.awaitDisconnected() }()
	<-c.begun
	if err := b.AddBridge(bridge.Bridge{Name: "br0", DatapathID: 1, FailMode: failSecure}); err != nil {
		t.Fatal(err)
	}
	entry := func(priority int, actions ...flow.Action) *flow.Entry {
		return &flow.Entry{Priority: uint16(priority), Actions: actions}
	}
	apply := func(first uint8, bundle *flow.Bundle) {
		t.Helper()
		bundle.Names, bundle.First = flow.NewNames(), first
		if err := b.changes.Apply(bundle); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(sw.Dir, "switch.flows")
	remembered := func() int {
		b.changes.mu.Lock()
		defer b.changes.mu.Unlock()
		return len(b.changes.recent)
	}
	apply(7, &flow.Bundle{Add: []*flow.Entry{entry(1), entry(2), entry(3)}})
	nstest.Until(t, "the file to have the first changes", func() bool { b.changes.forgetWritten(ctx); return remembered() == 0 })
	old, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	apply(0, &flow.Bundle{Delete: []*flow.Entry{entry(1)}, Add: []*flow.Entry{entry(2, flow.Output{Port: flow.PortNormal})}})
	var added door.BundleText
	added.Add(entry(4))
	if err := b.changes.ApplyText(&added); err != nil {
		t.Fatal(err)
	}
	want := "table 0: [4 does 0 3 does 0 2 does 1]"
	has := func() string {
		var all []string
		for _, f := range client.Flows() {
			all = append(all, fmt.Sprint(f.Entry.Priority, " does ", len(f.Entry.Actions)))
		}
		return fmt.Sprintf("table %d: %v", client.First(), all)
	}
	if now := has(); now != want {
		t.Fatalf("before: %s, want %s", now, want)
	}
	for _, file := range [][]byte{old, nil} {
		if n := remembered(); n != 2 {
			t.Fatalf("%d changes are remembered, want 2", n)
		}
		stop()
		if err := os.WriteFile(kept, file, 0o600); err != nil {
			t.Fatal(err)
		}
		stop = start()
		if file == nil { // then the bridge begins without entries, and controllers connect again
			want = "table 0: []"
		}
		nstest.Until(t, "the last entries: "+want, func() bool { return has() == want })
	}
	defer func() { stop() }()
}
