package rules

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// elsewhere are what the program has on machines without Linux: packets, flow entries, the tables of
// all programs, objects to entries, the walk with connections, answers from files, and lessons.
var elsewhere = []string{"packet", "flow", "flow/parse", "tables", "tables/programs", "control", "conntrack", "dataplane", "switchd/local", "agent/answer", "learn", "trace"}

// linuxOnly are packages that the program must not have there: they take a kernel.
var linuxOnly = []string{"switchd", "host", "agent", "lab", "bench", "ports/afpacket", "ports/underlay"}

// TestTableEngineBuildsElsewhere is A-W11: hack/lint builds the program for Windows and macOS, and the
// program has the table engine there.
func TestTableEngineBuildsElsewhere(t *testing.T) {
	lint, err := os.ReadFile("../../hack/lint")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"GOOS=windows GOARCH=amd64", "GOOS=darwin GOARCH=arm64"} {
		if !strings.Contains(string(lint), "\n"+target+" go build -o /dev/null ./cmd/antrail") {
			t.Errorf("hack/lint does not build the program with %s", target)
		}
		list := exec.Command("go", "list", "-deps", "./cmd/antrail")
		list.Dir, list.Env = "../..", append(os.Environ(), strings.Fields(target)...)
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%s go list: %v", target, err)
		}
		there := strings.Fields(string(out))
		for _, p := range elsewhere {
			if !slices.Contains(there, module+p) {
				t.Errorf("with %s the program has no package %s", target, p)
			}
		}
		for _, p := range linuxOnly {
			if slices.Contains(there, module+p) {
				t.Errorf("with %s the program has package %s, which is for Linux", target, p)
			}
		}
	}
}
