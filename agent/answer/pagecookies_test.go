package answer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/internal/browsertest"
	"github.com/antrail/antrail/packet"
)

// cookieFlows are entries of a controller that antrail does not know: tables without names.
const cookieFlows = `cookie=0x17, table=0, priority=10,ip,in_port=1 actions=goto_table:5
cookie=0x18, table=5, priority=20,tcp,tp_dst=80 actions=drop
cookie=0x18, table=5, priority=10,udp actions=drop
`

// TestPageCookies: in a browser, entries without objects have their cookies: a table, the list of
// objects, and one of them.
func TestPageCookies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.flows")
	for name, text := range map[string]string{file: cookieFlows, filepath.Join(filepath.Dir(file), "x.ports"): " 1(v0): addr:02:00:00:00:00:01\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := pipeline.Files{Flows: file}.Beside().Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	n := &watchedNode{Answers: New(p)}
	if n.ports, err = n.addMemoryPorts(nil); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, servePage(t, n))
	b.Poll(`document.querySelector("#pulse")?.dataset.state === "live"`)
	n.send(t, 1, syn("10.10.0.24", 1000), packet.Tunnel{}, 0)
	b.Value(`location.hash = "#/table/5"`)
	b.Poll(`document.querySelectorAll("#panel .entries li").length === 2`)
	b.Click("#panel .entries button")
	b.Poll(`document.querySelector("#panel .origins a")?.textContent === "cookie=0x18"`)
	b.Value(`location.hash = "#/drops"`)
	b.Poll(`document.querySelector("#panel .origins a")?.textContent === "cookie=0x18"`)
	b.Value(`location.hash = "#/objects"`)
	b.Poll(`document.querySelectorAll("#panel .rows li").length === 2`)
	b.Poll(`document.querySelector("#panel .rows").textContent.includes("1 packet")`)
	b.Click("#panel .rows li:last-child a")
	b.Poll(`document.querySelectorAll("#panel .entries li").length === 2`)
	b.Poll(`document.querySelector("#panel h2").textContent === "cookie=0x18"`)
	b.Shot("cookie")
}
