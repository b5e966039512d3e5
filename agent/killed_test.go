package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestDevicesOutliveTheirAgent: the gateway and the other taps of an agent that is
// killed are the very same for the next one. The next one deletes those that its objects no
// longer ask for. An agent that stops deletes all.
func TestDevicesOutliveTheirAgent(t *testing.T) {
	node, c := upgradedNode(t)
	killed := startProcess(t, node, c)
	wantReady(t, c)
	gateway, tap := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index
	killed.Process.Kill()
	<-killed.ended

	next := startProcess(t, node, c)
	wantReady(t, c)
	next.wantSaid(t, "the previous agent's switch still runs")
	if g, p := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index; g != gateway || p != tap {
		t.Errorf("links %d and %d are %d and %d now: they were made anew", gateway, tap, g, p)
	}
	next.Process.Kill()
	<-next.ended

	os.Remove(c.AssignmentsFile())
	renameTaps(t, c.Manifests, "antrea-tc-tap", "other-tc-tap")
	last := startProcess(t, node, c)
	wantReady(t, c)
	nstest.Until(t, "the tap goes that nobody asks for", func() bool {
		_, err := node.Links().LinkByName("antrea-tc-tap0")
		return err != nil
	})
	node.Link(t, "other-tc-tap0")
	last.stop(t)
	wantNothingLeft(t, node, c)
	if _, err := node.Links().LinkByName("other-tc-tap0"); err == nil {
		t.Error("a tap is there after SIGTERM")
	}
}

// renameTaps gives ports other links in all manifests.
func renameTaps(t *testing.T, dir, from, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
