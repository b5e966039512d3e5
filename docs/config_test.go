package docs

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/control"
	"sigs.k8s.io/yaml"
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

// TestConfigKeysAreTold: operating.md has every key of the configuration: in an
// example, or in its text as gateway.name, or alone where no other key is called so.
func TestConfigKeysAreTold(t *testing.T) {
	text, err := os.ReadFile("operating.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(text, -1) {
		var example any
		if err := yaml.Unmarshal(m[1], &example); err != nil {
			t.Fatal(err)
		}
		markKeys(told, "", example)
	}
	for _, m := range regexp.MustCompile("`([A-Za-z.\\[\\]]+)[`:]").FindAllSubmatch(text, -1) {
		key := strings.ReplaceAll(string(m[1]), "[]", "")
		above, _, _ := strings.Cut(key, ".")
		told[key], told[above] = true, true
	}
	keys, named := configKeys(nil), map[string]int{}
	for _, key := range keys {
		named[lastOf(key)]++
	}
	for _, key := range keys {
		if !told[key] && (named[lastOf(key)] > 1 || !told[lastOf(key)]) {
			t.Errorf("operating.md says nothing of %s", key)
		}
	}
	if len(keys) < 60 {
		t.Errorf("%d keys", len(keys))
	}
}

func lastOf(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// markKeys notes the keys of an example, as peers.name.
func markKeys(told map[string]bool, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, v := range v {
			at := strings.TrimPrefix(key+"."+k, ".")
			told[at] = true
			markKeys(told, at, v)
		}
	case []any:
		for _, v := range v {
			markKeys(told, key, v)
		}
	}
}

// configKeys are the keys of a configuration below one, as peers.name, those with keys
// of their own among them.
func configKeys(above []string) (all []string) {
	for _, name := range control.FieldNames(reflect.TypeFor[agent.Config](), above) {
		key := append(slices.Clip(above), name)
		all = append(append(all, strings.Join(key, ".")), configKeys(key)...)
	}
	return all
}
