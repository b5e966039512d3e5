package docs

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/tables"
)

// reading is the text of reading.md.
func reading(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("reading.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadingHasTheTables: the stages of reading.md are those of the pipeline, with
// their tables in order.
func TestReadingHasTheTables(t *testing.T) {
	var want, got []string
	for _, name := range tables.TableNames() {
		want = append(want, tables.Stage(name)+" "+name)
	}
	_, text, _ := strings.Cut(reading(t), "| stage | tables |")
	text, _, _ = strings.Cut(text, "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+) \| ([\w, ]+) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Split(m[2], ", ") {
			got = append(got, m[1]+" "+name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("reading.md has the tables\n%q\nthe pipeline has\n%q", got, want)
	}
}

// TestReadingWalks: the walk of reading.md is that of the packet in the command above it.
func TestReadingWalks(t *testing.T) {
	c, err := answer.Offline(pipeline.Files{Flows: "../examples/two-nodes/node-a.flows"}.Beside(), config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(reading(t), "antrail trace --flows examples/two-nodes/node-a.flows")
	packet, text, _ := strings.Cut(strings.SplitN(text, "'", 2)[1], "'")
	b, err := c.Post(t.Context(), "/trace", url.Values{"format": {"json"}}, &api.TraceRequest{Flow: packet})
	if err != nil {
		t.Fatal(err)
	}
	var walk api.TraceAnswer
	if err := json.Unmarshal(b, &walk); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range walk.Entries {
		entry := fmt.Sprintf("priority=%d,%s", e.Priority, e.Match)
		want = append(want, e.Table+" "+strings.TrimSuffix(entry, ","))
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| \\[(\\w+)\\]\\(pipeline/\\w+.md\\) \\| `([^`]*)` \\|").FindAllStringSubmatch(text, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("reading.md has the walk\n%s\nit is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadingShowsEntries: the entries of reading.md are those of node-a.
func TestReadingShowsEntries(t *testing.T) {
	c, err := answer.Offline(pipeline.Manifests{Path: "../examples/web-app", Node: "node-a"}, config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, path := range []string{"/flows", "/groups"} {
		b, err := c.Get(t.Context(), path, url.Values{"names": {"1"}, "stats": {"0"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			there[cookie.ReplaceAllString(strings.TrimSpace(line), "")] = true
		}
	}
	shown := 0
	for _, m := range regexp.MustCompile("(?ms)^```flows\n(.*?)\n```").FindAllStringSubmatch(reading(t), -1) {
		for _, line := range strings.Split(m[1], "\n") {
			if shown++; !there[line] {
				t.Errorf("node-a has no\n%s", line)
			}
		}
	}
	if shown == 0 {
		t.Error("reading.md shows no entries")
	}
}

// cookie is that of an entry in a dump.
var cookie = regexp.MustCompile(`^cookie=\w+, `)
