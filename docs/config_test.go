package docs

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/manifest"
)

// TestConfigExamples parses the configurations of configure.md: the whole ones, and each
// piece together with the first one that has all keys a Node needs.
func TestConfigExamples(t *testing.T) {
	text, err := os.ReadFile("configure.md")
	if err != nil {
		t.Fatal(err)
	}
	var whole []byte
	all := yamlBlock.FindAllSubmatch(text, -1)
	for _, m := range all {
		if bytes.Contains(m[1], []byte("\nflows:")) {
			whole = m[1]
		}
	}
	if len(all) < 4 || whole == nil {
		t.Fatalf("configure.md has %d pieces of configuration and the whole one %q", len(all), whole)
	}
	for _, m := range all {
		piece := m[1]
		if !bytes.Contains(piece, []byte("nodeName:")) {
			piece = slices.Concat(whole, piece)
		}
		if _, err := config.Parse(piece); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// keySpan is a key of the configuration in the text of a page, as `conntrack.max` or
// `proxyAll: true`.
var keySpan = regexp.MustCompile("`([a-zA-Z]+(?:\\[\\])?(?:\\.[a-zA-Z]+)+)(?:: [^`]*)?`")

// TestConfigKeysOfPagesExist: each key that a page names with its section is one.
func TestConfigKeysOfPagesExist(t *testing.T) {
	keys, sections := configKeys(nil), map[string]bool{}
	for _, key := range keys {
		section, _, _ := strings.Cut(key, ".")
		sections[section] = sections[section] || section != key
	}
	if len(keys) < 60 {
		t.Errorf("%d keys", len(keys))
	}
	named := 0
	for page, text := range pages(t) {
		for _, m := range keySpan.FindAllStringSubmatch(text, -1) {
			key := strings.ReplaceAll(m[1], "[]", "")
			section, below, _ := strings.Cut(key, ".")
			if !sections[section] || slices.Contains(notKeys, key) || strings.HasPrefix(below, "md") {
				continue
			}
			if named++; !slices.Contains(keys, key) && !strings.HasPrefix(key, "kubernetes.features.") {
				t.Errorf("%s names the key %s, which the configuration has not", page, key)
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d keys are named", named)
	}
}

// notKeys look like keys of the configuration and are names of other things.
var notKeys = []string{"page.url", "cni.record", "conntrack.Pass"}

// configKeys are the keys of a configuration below one, as peers.name, those with keys
// of their own among them.
func configKeys(above []string) (all []string) {
	for _, name := range manifest.FieldNames(reflect.TypeFor[config.Config](), above) {
		key := append(slices.Clip(above), name)
		all = append(append(all, strings.Join(key, ".")), configKeys(key)...)
	}
	return all
}
