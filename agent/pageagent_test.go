package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/internal/browsertest"
	"github.com/antrail/antrail/switchd"
)

// TestPageOfAgent: the agent serves its page to a user that may read the file of the URL. The
// file goes with the agent.
func TestPageOfAgent(t *testing.T) {
	a, _ := loadedAgent(t, "page: {address: 127.0.0.1:1}\n")
	c := a.config
	c.Socket, c.Page.Address = filepath.Join(t.TempDir(), "agent.sock"), browsertest.FreeAddress(t)
	if _, err := answer.PageURL(c.Socket); err == nil || !strings.Contains(err.Error(), "no agent answers at "+c.Socket) || !strings.Contains(err.Error(), "--serve") {
		t.Errorf("without an agent: %v", err)
	}
	socket, err := switchd.Listen(c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := answer.PageURL(c.Socket); err == nil || !strings.Contains(err.Error(), "serves no page: set page.address") {
		t.Errorf("before: %v", err)
	}
	log := make(logLines, 100)
	a.log = slog.New(slog.NewTextHandler(log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.runPage(ctx) }()
	log.want(t, "served over TCP: the page")
	var first string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if first, err = answer.PageURL(c.Socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(c.PageFile()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file of the URL: %v, %v", st.Mode(), err)
	}
	base := "http://" + c.Page.Address
	if !strings.HasPrefix(first, base+"/enter?token=") {
		t.Errorf("the URL is %s", first)
	}
	if code, text := browsertest.Fetch(t, browsertest.Visitor(t), base+"/"); code != 401 || strings.Contains(text, "<") {
		t.Errorf("a stranger: %d %s", code, text)
	}
	v := browsertest.Visitor(t)
	browsertest.Fetch(t, v, first)
	if code, text := browsertest.Fetch(t, v, base+"/api/tables?format=json"); code != 200 || !strings.Contains(text, `"SpoofGuard"`) {
		t.Errorf("after the token: %d %.200s", code, text)
	}
	if next, err := answer.PageURL(c.Socket); err != nil || next == first {
		t.Errorf("the next URL is %s, %v", next, err)
	}
	stop()
	<-ended
	for close(log); len(log) > 0; {
		if line := <-log; strings.Contains(line, "token") {
			t.Errorf("the log has %s", line)
		}
	}
	if _, err := os.Stat(c.PageFile()); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
}
