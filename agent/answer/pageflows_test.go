package answer

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/internal/browsertest"
)

// TestPageOfFlows shows a flow file, which knows no objects and through which nothing
// passes: its map and entries, packets that are typed, and in every other view what
// there is none of.
func TestPageOfFlows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.flows")
	if err := os.WriteFile(path, []byte("table=0, priority=9,ip,in_port=1 actions=goto_table:1\ntable=1, priority=0 actions=output:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Offline(pipeline.Files{Flows: path}.Beside())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	invitations, ended := make(chan string, 2), make(chan error, 1)
	s := PageServer{Agents: []*api.Client{c}, Address: "127.0.0.1:0", Invite: func(url string) error { invitations <- url; return nil }}
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b := browsertest.Open(t, <-invitations)
	b.Poll(`document.querySelectorAll("#map .table").length === 2`)
	if size := b.Value(`Math.round(document.querySelector("#map .box").getBoundingClientRect().height) < 65`); size != "true" {
		t.Error("the boxes of a small map are large")
	}
	b.Shot("flows-map")
	for _, v := range []struct{ view, says string }{
		{"table/0", "in_port=1"}, {"drops", "Nothing was lost so far"}, {"connections", "No connection is tracked now"}, {"plots", "antrail bench --save DIR"},
		{"nodes", "Its ports are below"}, {"objects", "flow files"},
	} {
		b.Value(`location.hash = "#/` + v.view + `"`)
		b.Poll(`document.querySelector("#panel").textContent.includes("` + v.says + `")`)
		b.Shot("flows-" + v.view[:5])
	}
	b.Value(`location.hash = "#/walk"`)
	b.Put("#typed textarea", "in_port=1,ip")
	b.Click("#typed button.first")
	b.Poll(`document.querySelector("#way .where")?.textContent === "1 of 2"`)
	b.Key("End")
	b.Poll(`document.querySelector("#way .verdict")?.textContent.startsWith("dropped in table 1 (no_such_port)")`)
	b.Click("#panel details summary")
	b.Click("#live button")
	b.Poll(`document.querySelector("#live .about").textContent.startsWith("Nothing passes here")`)
}
