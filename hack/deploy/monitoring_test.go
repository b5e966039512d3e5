package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// foreign are metrics that are not antrail's: Prometheus' own, and the process's.
var foreign = map[string][]string{"up": {"job"}, "process_resident_memory_bytes": {}}

// known are the labels of all metrics, from the page that the agent's test keeps.
func known(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(foreign)
	for _, m := range regexp.MustCompile("(?m)^\\| `(antrail_\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		all[m[1]] = strings.Fields(strings.ReplaceAll(m[2], ",", " "))
	}
	if len(all) < 60 {
		t.Fatalf("docs/metrics.md tells of %d metrics", len(all))
	}
	return all
}

// check parses an expression, and sees that each metric and label of it exists.
func check(t *testing.T, where, expr string, metrics map[string][]string) (used []string) {
	t.Helper()
	e, err := parser.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
		return nil
	}
	labels := map[string]bool{"instance": true, "job": true, "le": true}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			used = append(used, s.Name)
			checkSelector(t, where, s, metrics, labels)
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, label := range a.Grouping {
				if !labels[label] {
					t.Errorf("%s: no metric of %s has the label %q", where, expr, label)
				}
			}
		}
		return nil
	})
	return used
}

// checkSelector notes the labels that a metric has.
func checkSelector(t *testing.T, where string, s *parser.VectorSelector, metrics map[string][]string, labels map[string]bool) {
	t.Helper()
	has, ok := metrics[strings.TrimSuffix(s.Name, "_bucket")]
	if !ok {
		t.Errorf("%s: there is no metric %s", where, s.Name)
		return
	}
	for _, label := range has {
		labels[label] = true
	}
	for _, m := range s.LabelMatchers {
		if name := m.Name; name != "__name__" && name != "instance" && !slices.Contains(has, name) {
			t.Errorf("%s: %s has no label %q; it has %v", where, s.Name, name, has)
		}
	}
}

// dashboard is what of Grafana's JSON is looked at.
type dashboard struct {
	UID, Title, Description string
	Tags                    []string
	Templating              struct {
		List []struct {
			Name  string
			Query any
		}
	}
	Panels []struct {
		ID          int
		Title, Type string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

// withoutVariables puts values in place of Grafana's variables.
var withoutVariables = strings.NewReplacer("$__rate_interval", "1m", "$node", ".*", "$port", ".*", "$table", ".*", "$namespace", ".*")

// TestDashboards: every expression is PromQL over metrics and labels that exist, every
// legend names a label that is left, and no two panels lie on each other.
func TestDashboards(t *testing.T) {
	metrics := known(t)
	files, err := filepath.Glob("../../deploy/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	uids := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var d dashboard
			if err := json.Unmarshal(b, &d); err != nil {
				t.Fatal(err)
			}
			if uids[d.UID] || d.UID != "antrail-"+strings.TrimSuffix(filepath.Base(file), ".json") || d.Title == "" || d.Description == "" || !slices.Contains(d.Tags, "antrail") {
				t.Errorf("uid %q, title %q, tags %v", d.UID, d.Title, d.Tags)
			}
			uids[d.UID] = true
			d.checkVariables(t, metrics)
			d.checkPanels(t, metrics)
		})
	}
}

// checkVariables: label_values(METRIC, LABEL) of what exists.
func (d *dashboard) checkVariables(t *testing.T, metrics map[string][]string) {
	t.Helper()
	values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		q, isQuery := v.Query.(map[string]any)
		if !isQuery {
			continue
		}
		m := values.FindStringSubmatch(fmt.Sprint(q["query"]))
		if m == nil || metrics[m[1]] == nil || m[2] != "instance" && !slices.Contains(metrics[m[1]], m[2]) {
			t.Errorf("variable %s: %v", v.Name, q["query"])
		}
	}
}

func (d *dashboard) checkPanels(t *testing.T, metrics map[string][]string) {
	t.Helper()
	taken, ids := map[[2]int]string{}, map[int]bool{}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has %d targets, or the number of another", p.ID, p.Title, len(p.Targets))
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%s lies on %s, or beside the page", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			expr := withoutVariables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: an unknown variable in %s", p.Title, expr)
			}
			check(t, p.Title, expr, metrics)
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if by := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(target.Expr); by != nil && !strings.Contains(by[1], m[1]) {
					t.Errorf("%s: the legend has %s, which %s does not keep", p.Title, m[1], target.Expr)
				}
			}
		}
	}
}

// TestAlerts reads the rules as Prometheus does.
func TestAlerts(t *testing.T) {
	metrics := known(t)
	const file = "../../deploy/alerts/antrail.rules.yaml"
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	names := map[string]bool{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if names[r.Alert] || !strings.HasPrefix(r.Alert, "Antrail") || r.For == 0 || r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
				!slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%+v", r)
			}
			names[r.Alert] = true
			if used := check(t, r.Alert, r.Expr, metrics); len(used) == 0 {
				t.Errorf("%s asks for no metric", r.Alert)
			}
		}
	}
	if len(names) < 10 {
		t.Errorf("%d alerts", len(names))
	}
}

// overlay is what an overlay with the base and the component gives.
func overlay(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("../../deploy/kustomize", "test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\ncomponents: [../monitoring]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return built(t, filepath.Base(dir))
}

// TestMonitoring: the component and the chart's values give the same objects, which
// are the files; without them there is nothing of it.
func TestMonitoring(t *testing.T) {
	base, with := built(t, "base"), overlay(t)
	chart := rendered(t, map[string]any{"dashboards": map[string]any{"enabled": true}, "alerts": map[string]any{"enabled": true}})
	if len(with) != len(base)+2 || len(chart) != len(with) {
		t.Errorf("%d objects, with monitoring %d, by the chart %d", len(base), len(with), len(chart))
	}
	for name, files := range map[string]string{"ConfigMap/antrail-dashboards": "dashboards/*.json", "ConfigMap/antrail-alerts": "alerts/*.rules.yaml"} {
		var m, ofChart corev1.ConfigMap
		for to, text := range map[*corev1.ConfigMap]string{&m: with[name], &ofChart: chart[name]} {
			if err := yaml.UnmarshalStrict([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(m.Labels, ofChart.Labels) || m.Namespace != ofChart.Namespace {
			t.Errorf("%s: %v in %s, of the chart %v in %s", name, m.Labels, m.Namespace, ofChart.Labels, ofChart.Namespace)
		}
		found, err := filepath.Glob("../../deploy/" + files)
		if err != nil || len(found) == 0 || len(m.Data) != len(found) || len(ofChart.Data) != len(found) {
			t.Errorf("%s: %d files, %d in the ConfigMap, %d in the chart's, %v", name, len(found), len(m.Data), len(ofChart.Data), err)
		}
		for _, file := range found {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			key := filepath.Base(file)
			if m.Data[key] != string(want) || ofChart.Data[key] != string(want) {
				t.Errorf("%s: %s is not the file: %d bytes, in the ConfigMap %d, in the chart's %d", name, key, len(want), len(m.Data[key]), len(ofChart.Data[key]))
			}
		}
	}
}
