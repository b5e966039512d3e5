//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
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
		{[]string{"--flows", "x"}, exitUsage, "use --serve ADDRESS"},
		{[]string{"--plots", "x"}, exitUsage, "use --serve ADDRESS"},
		{[]string{"--serve", "0.0.0.0:0", "--socket", socket}, exitFailed, "not a loopback IP address"},
	} {
		var out bytes.Buffer
		if code := run(append([]string{"page"}, c.args...), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: %d %s; want %d with %q", c.args, code, out.String(), c.code, c.want)
		}
	}
}

// TestPageHasBenchmark: what antrail bench --save writes is what the page shows.
func TestPageHasBenchmark(t *testing.T) {
	dir := t.TempDir()
	c := &report.Comparison{Profile: "forward", Title: "Forwarding", Sides: []string{"one"}, Lines: []report.Line{{Name: "rate", Unit: "Mpps", Reached: []*report.Spread{nil}}}}
	if err := (&rig.Result{Comparisons: []*report.Comparison{c}}).Save(dir); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	invitations, ended := make(chan string, 2), make(chan error, 1)
	s := answer.PageServer{
		Agents: []*api.Client{api.NewClient("/no/such.sock")}, Address: "127.0.0.1:0", Plots: dir,
		Invite: func(url string) error { invitations <- url; return nil },
	}
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, invitation := &http.Client{Jar: jar}, <-invitations
	base, err := url.Parse(invitation)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, want string }{
		{invitation, "refresh"}, {"http://" + base.Host + "/plots", `"names":["forward"]`}, {"http://" + base.Host + "/plots/forward", "Forwarding</text>"},
	} {
		resp, err := browser.Get(c.address)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d, %v, %.300s; want %s", c.address, resp.StatusCode, err, text, c.want)
		}
	}
}
