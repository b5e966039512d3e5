package docs

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/antrail/antrail/agent"
)

// TestConfigExamples parses the configuration file of operating.md, and with it
// each further piece of one that the page shows, or the whole one with the API.
func TestConfigExamples(t *testing.T) {
	text, err := os.ReadFile("operating.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(text, -1)
	if len(all) < 3 {
		t.Fatalf("operating.md has %d pieces of configuration, want a whole one, auditLog and conntrack", len(all))
	}
	whole := all[0][1]
	for i, m := range all {
		piece := m[1]
		if i > 0 && !bytes.Contains(piece, []byte("\nkubernetes:")) { // that is another whole one
			piece = slices.Concat(whole, piece)
		}
		if _, err := agent.ParseConfig(piece); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
}
