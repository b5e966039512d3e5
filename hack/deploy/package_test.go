//go:build release

package deploy

import (
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestPackagedChart: Helm loads the chart of a release (ANTRAIL_CHART), which has the
// release's version, names its image, and has the dashboards that are links in deploy/helm.
func TestPackagedChart(t *testing.T) {
	file, version := os.Getenv("ANTRAIL_CHART"), os.Getenv("ANTRAIL_VERSION")
	chart, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Error(err)
	}
	if chart.Metadata.Version != version || chart.Metadata.AppVersion != version {
		t.Errorf("%s has version %s and appVersion %s, want %s", file, chart.Metadata.Version, chart.Metadata.AppVersion, version)
	}
	values := map[string]any{"dashboards": map[string]any{"enabled": true}, "alerts": map[string]any{"enabled": true}}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "antrail"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(files["antrail/templates/daemonset.yaml"], "image: antrail:"+version+"\n"); n != 2 {
		t.Errorf("%d containers have the image antrail:%s, want 2:\n%s", n, version, files["antrail/templates/daemonset.yaml"])
	}
	if monitoring := files["antrail/templates/monitoring.yaml"]; len(monitoring) < 10_000 {
		t.Errorf("dashboards and alerts have %d bytes", len(monitoring))
	}
}
