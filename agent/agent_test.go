package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
)

// TestRunEndsWithoutError: an agent that stops returns no error, and removes its gateway and its
// socket.
func TestRunEndsWithoutError(t *testing.T) {
	c, err := config.Parse([]byte(goodConfig))
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
	p := startProcess(t, node, c)
	wantReady(t, c)
	p.stop(t)
	if _, err := os.Stat(c.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket: %v", err)
	}
	if _, err := node.Links().LinkByName(c.Gateway.Name); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("gateway: %v", err)
	}
}

// TestRunGoesOn: an agent with manifests leaves its last rules when it
// stops. The next one has them without manifests, and leaves the
// file as it is.
func TestRunGoesOn(t *testing.T) {
	c, manifests := keptNode(t)
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	node.SetUp(t, "lo")
	first := runToStop(t, node, c)
	if err := os.RemoveAll(manifests); err != nil {
		t.Fatal(err)
	}
	kept, err := os.Stat(c.AssignmentsFile())
	if err != nil {
		t.Fatal(err)
	}
	second := runToStop(t, node, c)
	if len(first) == 0 || second != first {
		t.Errorf("the second agent has\n%s\nwant\n%s", second, first)
	}
	if now, err := os.Stat(c.AssignmentsFile()); err != nil || !now.ModTime().Equal(kept.ModTime()) {
		t.Errorf("the file was written again, by an agent that knows less: %v, %v", now, err)
	}
}

// runToStop runs an agent until it is ready, and tells its entries and groups.
func runToStop(t *testing.T, node *nstest.Namespace, c *config.Config) string {
	t.Helper()
	p := startProcess(t, node, c)
	wantReady(t, c)
	got := askText(t, c, "/flows") + askText(t, c, "/groups")
	p.stop(t)
	return got
}
