package answer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/telemetry"
)

const dropsPage = "../../docs/drops.md"

const dropsHead = `# Why a packet is lost

All reasons that ` + "`antrail drops`" + ` has, from the program's own list; [how to ask](packet-lost.md).
A test keeps this page; ` + "`go test ./agent/answer -run TestDropsPage -update`" + ` writes it.
`

// TestDropsPage compares the page with the list of reasons.
func TestDropsPage(t *testing.T) {
	all := pipeline.LossReasons()
	inPipeline, ofPorts := len(telemetry.DropReasons()), slices.IndexFunc(all, func(r pipeline.LossReason) bool { return strings.HasPrefix(r.Name, "port_") })
	var want strings.Builder
	want.WriteString(dropsHead)
	for _, part := range []struct {
		head    string
		reasons []pipeline.LossReason
	}{
		{"In the pipeline: `dump-drops`, and `antrail_dropped_packets_total`", all[:inPipeline]},
		{"By the agent, which entries send the packet to", all[inPipeline:ofPorts]},
		{"At a port: `dump-ports`, and `antrail_port_drops_total`, by their words", all[ofPorts:]},
	} {
		fmt.Fprintf(&want, "\n## %s\n\n| reason | meaning |\n|---|---|\n", part.head)
		for _, r := range part.reasons {
			fmt.Fprintf(&want, "| `%s` | %s |\n", r.Name, r.Meaning)
		}
	}
	if *update {
		if err := os.WriteFile(dropsPage, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(dropsPage); err != nil || string(got) != want.String() {
		t.Errorf("%s is not the list of reasons (%v); write it with -update", dropsPage, err)
	}
}
