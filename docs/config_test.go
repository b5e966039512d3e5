package docs

import (
	"os"
	"regexp"
	"testing"

	"github.com/antrail/antrail/agent"
)

// TestConfigExample parses the configuration file of operating.md.
func TestConfigExample(t *testing.T) {
	text, err := os.ReadFile("operating.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindSubmatch(text)
	if m == nil {
		t.Fatal("operating.md has no configuration file")
	}
	if _, err := agent.ParseConfig(m[1]); err != nil {
		t.Error(err)
	}
}
