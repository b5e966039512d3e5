package answer

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write the pages of metrics and drop reasons anew")

// metricsPage is the list of all metrics, which dashboards and alert rules are
// checked against (hack/deploy).
const metricsPage = "../../docs/metrics.md"

const metricsHead = `# Metrics

All metrics of the agent, from the program's own descriptions; [how to scrape them](metrics-and-alerts.md).
A test keeps this page; ` + "`go test ./agent/answer -run TestMetricsPage -update`" + ` writes it.

| metric | labels | meaning |
|---|---|---|
`

// desc is a description as client_golang prints one.
var desc = regexp.MustCompile(`fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// TestMetricsPage compares the page with what an agent registers.
func TestMetricsPage(t *testing.T) {
	p, err := pipeline.Manifests{Path: "../../examples/web-app", Node: "node-a"}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	p.API = &kube.Source{} // an agent with the API has its metrics too
	p.ObserveDelays()
	ch := make(chan *prometheus.Desc)
	go func() { Registry(New(p)).Describe(ch); close(ch) }()
	var lines []string
	for d := range ch {
		m := desc.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is not described as expected", d)
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), strings.ReplaceAll(m[2], `\"`, `"`)))
	}
	slices.Sort(lines)
	want := metricsHead + strings.Join(lines, "")
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(metricsPage); err != nil || string(got) != want {
		t.Errorf("%s is not what the agent registers (%v); write it with -update", metricsPage, err)
	}
}

// TestMetricsDescribed: what is collected was described, so that the page has it.
func TestMetricsDescribed(t *testing.T) {
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Manifests{Path: "../../examples/web-app", Node: "node-a"}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	all, err := Registry(New(p)).Gather()
	if err != nil || len(all) < 30 {
		t.Fatalf("%d metrics, %v", len(all), err)
	}
	for _, m := range all {
		if !strings.Contains(string(page), "| `"+m.GetName()+"` |") {
			t.Errorf("%s is collected and not described", m.GetName())
		}
	}
}

// TestAlertReasons: the drop reasons that an alert names exist.
func TestAlertReasons(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/alerts/antrail.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, r := range telemetry.DropReasons() {
		reasons = append(reasons, r.String())
	}
	found := 0
	for _, m := range regexp.MustCompile(`antrail_dropped_packets_total\{reason=~?"([^"]+)"`).FindAllStringSubmatch(string(rules), -1) {
		for _, name := range strings.Split(m[1], "|") {
			found++
			if !slices.Contains(reasons, name) {
				t.Errorf("no packet is dropped for %q", name)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d reasons are named", found)
	}
}
