package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	clusterBlock = regexp.MustCompile("(?ms)^```cluster\n(.*?)^```")
	daemonSet    = regexp.MustCompile(`daemonset/([\w-]+)`)
	manifestName = regexp.MustCompile(`(?m)^kind: DaemonSet\nmetadata:\n  name: ([\w-]+)$`)
)

// TestClusterCommands: the commands for a cluster, which make demo-k8s runs on one of its
// own, name manifests and DaemonSets that are there. The shell can parse them.
func TestClusterCommands(t *testing.T) {
	sets, err := filepath.Glob("../deploy/kustomize/*/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, path := range sets {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manifestName.FindAllSubmatch(text, -1) {
			known[string(m[1])] = true
		}
	}
	commands := 0
	for page, text := range pages(t) {
		for _, block := range clusterBlock.FindAllStringSubmatch(text, -1) {
			if out, err := exec.Command("bash", "-n", "-c", block[1]).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", page, err, out, block[1])
			}
			for _, m := range daemonSet.FindAllStringSubmatch(block[1], -1) {
				if !known[m[1]] {
					t.Errorf("%s: there is no DaemonSet %s", page, m[1])
				}
			}
			for _, word := range strings.Fields(block[1]) {
				if !strings.HasPrefix(word, "deploy/") {
					continue
				}
				commands++
				if _, err := os.Stat(filepath.Join("..", word)); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if commands < 6 {
		t.Errorf("%d manifests are named", commands)
	}
}
