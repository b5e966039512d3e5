package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettings: an unknown key or a value out of range is an error that names it and the file.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "switch.json")
	for text, want := range map[string]string{
		`{"workers": 2, "conntrack": {"max": 4096, "timeouts": {"udpSingle": "5s"}}, "offload": "off"}`: "",
		`{"workers": 99}`: "workers: 99",
		`{"conntrack": {"max": 3}, "offload": "maybe"}`: "offload: \"maybe\"",
		`{"wrokers": 2}`: "wrokers",
		`{`:              "unexpected EOF",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSettings(path)
		switch {
		case want == "" && (err != nil || s.Workers != 2 || s.Conntrack.Max != 4096):
			t.Errorf("%s: %+v, %v", text, s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
