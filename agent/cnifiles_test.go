package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni"
)

// TestConflist names the agent's socket, and the plugin first.
func TestConflist(t *testing.T) {
	text, err := conflist("/run/elsewhere/agent.sock")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Name    string
		Plugins []struct{ Type, Socket string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if list.Name != "antrail" || len(list.Plugins) != 3 || list.Plugins[0].Type != cni.Type || list.Plugins[0].Socket != "/run/elsewhere/agent.sock" {
		t.Errorf("%s", text)
	}
}

// TestReplaceFile: a new file, another content, the same again; and nothing is left
// beside it, also when the directory is not there.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"one", "two", "two"} {
		if err := replaceFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		st, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != content || st.Mode() != 0o755 {
			t.Errorf("%q of mode %v, errors %v, %v", got, st.Mode(), err, statErr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := replaceFile(filepath.Join(dir, "no", "f"), nil, 0o644); err == nil {
		t.Error("no error without a directory")
	}
}

// TestInstallPlugin copies the program that lies beside the agent's.
func TestInstallPlugin(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := config.CNIFiles{Plugin: filepath.Join(t.TempDir(), "bin")}
	if err := installPlugin(&n); err == nil || !strings.Contains(err.Error(), cni.Type) {
		t.Errorf("error %v without the program", err)
	}
	beside := filepath.Join(filepath.Dir(own), cni.Type)
	if err := os.WriteFile(beside, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	if err := installPlugin(&n); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(n.Plugin); err != nil || string(got) != "program" {
		t.Errorf("%q, %v", got, err)
	}
}
