package rig

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/report"
)

// saved writes a result of one figure, measured on a day of January, as version.
func saved(t *testing.T, dir, version string, day int, values ...float64) {
	t.Helper()
	r := &Result{Build: Build{Version: version, Commit: "0123456789abcdef"}, Began: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), Machine: Machine{Processor: "a processor"}}
	r.Comparisons = []*report.Comparison{{Profile: "stream", Title: "Streams", Sides: []string{"bridge", "antrail"}, Lines: []report.Line{
		{Name: "throughput", Unit: "Gbit/s", Reached: []*report.Spread{report.Series{20}.Spread(), report.Series(values).Spread()}},
		{Name: "rounds", Unit: report.SamplesUnit, Reached: []*report.Spread{report.Series{1}.Spread(), nil}},
	}}}
	if err := r.Save(filepath.Join(dir, version)); err != nil {
		t.Fatal(err)
	}
}

// TestTrend: results are ordered by their times, and an older program's has no version.
func TestTrend(t *testing.T) {
	dir := t.TempDir()
	saved(t, dir, "v2", 20, 30, 31, 32)
	saved(t, dir, "v1", 10, 20)
	saved(t, dir, "v3", 30, 40)
	if err := os.MkdirAll(filepath.Join(dir, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	runs, err := LoadRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	runs[0].Build = Build{}
	var table bytes.Buffer
	if err := WriteTrend(&table, runs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"v1: unknown build; 2026-01-10", "v2: v2 0123456789ab; ", "stream: Streams\n",
		"FIGURE      UNIT    SIDE     v1    v2    v3    CHANGE\n",
		"throughput  Gbit/s  antrail  20.0  31.0  40.0  +100 %\n", "throughput  Gbit/s  bridge   20.0  20.0  20.0  +0 %\n",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("there is no %q in\n%s", want, table.String())
		}
	}
	if strings.Contains(table.String(), "rounds") {
		t.Errorf("how the measurement went is in\n%s", table.String())
	}
	plots := t.TempDir()
	if err := SaveTrend(plots, runs); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(plots, "trend-stream.svg"))
	if err != nil || bytes.Count(svg, []byte("<circle")) != 6 || !bytes.Contains(svg, []byte(">antrail<")) || !bytes.Contains(svg, []byte(">v3<")) {
		t.Errorf("%v\n%s", err, svg)
	}
}

// TestTrendNeedsTwo: one result has no trend.
func TestTrendNeedsTwo(t *testing.T) {
	dir := t.TempDir()
	saved(t, dir, "v1", 10, 20)
	if _, err := LoadRuns(dir); err == nil || !strings.Contains(err.Error(), "a trend needs two results, and there are 1; antrail bench --save") {
		t.Error(err)
	}
}

// TestResultNames: bench.json has the version, the commit and the machine, under names in camel case.
func TestResultNames(t *testing.T) {
	dir := t.TempDir()
	saved(t, dir, "v1", 10, 20)
	text, err := os.ReadFile(filepath.Join(dir, "v1", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if v["version"] != "v1" || v["commit"] != "0123456789abcdef" || v["machine"].(map[string]any)["processor"] != "a processor" {
		t.Errorf("%s", text)
	}
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if k == "" || k[0] >= 'A' && k[0] <= 'Z' || strings.ContainsAny(k, "_- ") {
					t.Errorf("%s.%s is not in camel case", path, k)
				}
				check(path+"."+k, inner)
			}
		case []any:
			for _, inner := range v {
				check(path, inner)
			}
		}
	}
	check("", v)
}
