package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

// TestRunEndsWithoutError: an agent that is told to stop has not failed, and
// takes its gateway and its socket away.
func TestRunEndsWithoutError(t *testing.T) {
	c, err := ParseConfig([]byte(goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c.Ports, c.Flows, c.Socket = nil, filepath.Join(dir, "a.flows"), filepath.Join(dir, "agent.sock")
	if err := os.WriteFile(c.Flows, []byte("table=0,priority=0 actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	node.SetUp(t, "lo")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go stopWhenReady(ctx, NewClient(c.Socket), stop)
	node.Do(t, func() {
		if err := Run(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("the agent was not ready: %v", ctx.Err())
	}
	if _, err := os.Stat(c.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket: %v", err)
	}
	if _, err := node.Links().LinkByName(c.Gateway.Name); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("gateway: %v", err)
	}
}

func stopWhenReady(ctx context.Context, c *Client, stop func()) {
	for ctx.Err() == nil && c.Ready(ctx) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
}
