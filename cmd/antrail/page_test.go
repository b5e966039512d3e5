//go:build linux

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage prints the URL that an agent has left beside its socket, and says what to
// do where there is none.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	socket, mute := filepath.Join(dir, "agent.sock"), filepath.Join(dir, "mute", "agent.sock")
	if err := os.Mkdir(filepath.Dir(mute), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{socket, mute} {
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, "page.url"), []byte("http://127.0.0.1:1/enter?token=X\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--socket", socket}, 0, "http://127.0.0.1:1/enter?token=X\n"},
		{[]string{"--socket", mute}, exitFailed, "serves no page"},
		{[]string{"--socket", filepath.Join(dir, "other.sock")}, exitFailed, "no agent answers"},
		{[]string{"--flows", "x"}, exitUsage, "--serve says where"},
		{[]string{"--plots", "x"}, exitUsage, "--serve says where"},
		{[]string{"--serve", "0.0.0.0:0", "--socket", socket}, exitFailed, "no IP address of the loopback"},
	} {
		var out bytes.Buffer
		if code := run(append([]string{"page"}, c.args...), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: %d %s; want %d with %q", c.args, code, out.String(), c.code, c.want)
		}
	}
}
