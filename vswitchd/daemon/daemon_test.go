package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/vswitchd/bridgetest"
)

// TestExit: exit ends the daemon and removes its files. With --cleanup the switch's bridges go,
// otherwise they stay.
func TestExit(t *testing.T) {
	need(t, "ovs-vsctl")
	for _, c := range []struct{ words, want string }{{"-t ovsdb-server exit", "br0/br0"}, {"exit", "br0/br0"}, {"exit --cleanup", ""}} {
		dir, err := os.MkdirTemp("", "front")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		sw := bridgetest.New()
		d, err := New(config(dir, sw))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- d.Run(t.Context()) }()
		tool(t, dir, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
		if got, code := tool(t, dir, "ovs-appctl", strings.Fields(c.words)...); got != "" || code != 0 {
			t.Errorf("%s: %s", c.words, got)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", c.words, err)
		}
		if got := strings.Join(sw.Names(), " "); got != c.want {
			t.Errorf("%s leaves the ports %s, want %s", c.words, got, c.want)
		}
		files, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
		if err != nil || len(files) != 1 || filepath.Base(files[0]) != "conf.db" {
			t.Errorf("%s leaves the files %q", c.words, files)
		}
	}
}

// TestUnusable: a daemon that cannot open its files returns the reason, and leaves no files.
func TestUnusable(t *testing.T) {
	dir, err := os.MkdirTemp("", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "conf.db")
	if err := os.WriteFile(path, []byte("no database\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(config(dir, bridgetest.New())); err == nil || !strings.Contains(err.Error(), "not a standalone database") {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(config(dir, bridgetest.New())); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "ovs*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}
