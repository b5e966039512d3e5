//go:build linux && !portable

package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPortable builds the program from the files that Windows and macOS get, which -tags
// portable chooses on Linux, and runs it. Commands over files answer as those of the whole
// program do. Help lists no other command, and the others say that they need Linux.
func TestPortable(t *testing.T) {
	program := filepath.Join(t.TempDir(), "antrail")
	build := exec.Command("go", "build", "-tags=portable", "-pgo=off", "-ldflags=-s -w", "-o", program, "./cmd/antrail")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	portable := func(args ...string) (said string, code int) {
		out, err := exec.Command(program, args...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		} else if err != nil {
			code = exit.ExitCode()
		}
		return string(out), code
	}
	help, _ := portable("--help")
	for _, c := range rootCommand(new(bool)).Commands() {
		listed := strings.Contains(help, "\n  "+c.Name()+" ")
		said, code := portable(c.Name(), "--help")
		refused := code == exitFailed && strings.Contains(said, "antrail "+c.Name()+": this needs a switch, which antrail runs on Linux only")
		if !c.Hidden && listed == refused {
			t.Errorf("%s: listed %v, refused %v:\n%s", c.Name(), listed, refused, said)
		}
	}
	lessons, out := t.TempDir(), filepath.Join(t.TempDir(), "out.pcap")
	for _, line := range []string{
		"learn 1 --dir " + lessons, "learn 1 send to-db --dir " + lessons, "learn 1 check --dir " + lessons,
		"trace in_port=client-a,tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=fa:b7:53:74:21:a6,nw_src=10.10.0.26,nw_dst=10.10.0.24,tp_dst=80 --explain --node node-a " + webApp,
		"trace replay examples/two-nodes/walks.json " + nodeFiles, "trace show examples/two-nodes/walks.json",
		"replay docs/pipeline/walks/pod-to-pod.pcapng -w " + out + " " + seedFiles, "replay docs/pipeline/walks/pod-to-pod.pcapng --in-port client-a --node node-a " + webApp,
		"dump-flows --no-stats " + seedObjects, "dump-flows --no-stats " + seedFiles, "dump-flows --program uplink --no-stats --explain", "dump-groups " + seedFiles,
		"explain Service/default/sample-clusterip " + seedObjects, "explain table=L3Forwarding,priority=200,ip,reg0=0x200/0x200,nw_dst=10.10.0.24 " + seedObjects,
		"pipeline -o svg " + nodeFiles, "get pods -o yaml " + seedObjects, "why default/client-a default/db-b:3306 " + webApp, "conntrack stats " + seedFiles,
	} {
		var want bytes.Buffer
		wantCode := run(strings.Fields(line), &want, &want)
		if said, code := portable(strings.Fields(line)...); said != want.String() || code != wantCode || said == "" {
			t.Errorf("%s: exit code %d, want %d\n%s\nwant\n%s", line, code, wantCode, said, &want)
		}
	}
	for line, want := range map[string]string{
		"dump-flows":              "antrail: this needs a switch, which antrail runs on Linux only\nHere commands read files",
		"page":                    "on Linux only",
		"why default/a default/b": "on Linux only",
		"dump-flows --socket x":   "unknown flag: --socket; flags that name a running switch are for Linux\n",
		"trace --live":            "unknown flag: --live; ",
		"capture --port x -w y":   "antrail capture: this needs",
	} {
		if said, code := portable(strings.Fields(line)...); code == 0 || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, said)
		}
	}
}
